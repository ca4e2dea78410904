"""A step that runs alone before the task: it finds out what the task reads, and the task is refined again with that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasks_app.params.kinds import split_names
from tasks_app.params.schema import TaskParams, parse
from tasks_app.params.splitrule import SplitRule
from tasks_app.params.to_splitrule import from_params
from tasks_app.refining.columns import task_columns
from tasks_app.refining.generic import check_parent, complete_rule, refine_generic
from tasks_app.refining.layout import PSEUDO_DATASET, Layout, add_output, text_of
from tasks_app.refining.values import CannotRefine, DatasetSpec, Refined, Request

LOG_PREFIX = "prepro."
_MARK = re.compile(r"%%([A-Z_]+)%%")


def refine_preprocessing(request: Request) -> Refined:
    """The task with its preprocessing step only: a pseudo input, a log, and the command line of the step.

    Raises CannotRefine when the task has no log, since the step would have none either.
    """
    params = request.params
    spec = params.spec("preproSpec") or {}
    if not params.logs:
        raise CannotRefine("preproSpec needs log, for the log file of the preprocessing step.")
    layout = Layout()
    layout.first_master = layout.add(DatasetSpec(PSEUDO_DATASET, "pp_input"))
    add_output(layout, params.logs[0], request, is_log=True, type_as="pp_log")
    # Numbers begin at 1 again for the task's own logs, which lie in the same dataset.
    layout.templates[0] = replace(
        layout.templates[0], filenametemplate=LOG_PREFIX + layout.templates[0].filenametemplate
    )
    layout.text.append(str(spec["jobParameters"]))
    text = text_of(layout, request)
    rule: SplitRule = complete_rule(from_params(params), params, layout, request.defaults)
    trans_path = str(spec.get("transPath") or request.policy.transforms.preprocess)
    columns = task_columns(request, rule, text, params.text("transPath") or trans_path)
    return Refined(columns, tuple(layout.datasets), tuple(layout.templates), text)


def refine_in_two(request: Request) -> Refined:
    """Refine with the defaults of the installation; a task with a preprocessing step gets that step alone first.

    Raises CannotRefine, NotYet, or ParamErrors when the results of preprocessing do not fit.
    """
    if request.params.spec("preproSpec") is None:
        return refine_generic(request)
    if request.preprocessed is None:
        check_parent(request)
        return refine_preprocessing(request)
    # The stored text keeps its marks.
    return refine_generic(replace(request, params=with_results(request.params, request.preprocessed)))


def with_results(params: TaskParams, results: Mapping[str, str]) -> TaskParams:
    """Parameters in which every `%%NAME%%` is replaced by what the step found.

    Raises CannotRefine for a name that it did not find, ParamErrors when the result is no valid dictionary.
    """
    return parse(fill_marks(params.raw, results), stored=params.stored)


def fill_marks(raw: Mapping[str, Any], results: Mapping[str, str]) -> dict[str, Any]:
    """The submitted dictionary with its marks replaced. Raises CannotRefine for a name that was not found."""
    return {name: value if name == "preproSpec" else _filled(value, results, name) for name, value in raw.items()}


def _filled(value: Any, results: Mapping[str, str], key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(one, results, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, results, key) for one in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> str:
        if match[1] not in results:
            raise CannotRefine(f"{match[0]} is used, but the preprocessing step did not find it.")
        return results[match[1]]

    text = _MARK.sub(found, value)
    # An item's list of files may be one mark.
    return list(split_names(text)) if key == "files" and text != value else text
