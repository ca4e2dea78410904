"""The door to refining: chooses the refiner of a task and runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tasks_app.params.schema import TaskParams
from tasks_app.refining.analysis import refine_analysis
from tasks_app.refining.layout import containers_of, item_of_stream
from tasks_app.refining.policy import Policy
from tasks_app.refining.preprocessing import refine_in_two
from tasks_app.refining.production import refine_production
from tasks_app.refining.values import (
    CannotRefine,
    DatasetSpec,
    Defaults,
    NotYet,
    OutputTemplate,
    ParentView,
    Refined,
    Refiner,
    Request,
)

__all__ = [
    "REFINERS",
    "CannotRefine",
    "DatasetSpec",
    "Defaults",
    "NotYet",
    "OutputTemplate",
    "ParentView",
    "Policy",
    "Refined",
    "Refiner",
    "Request",
    "Rule",
    "containers_of",
    "item_of_stream",
    "refine",
    "refiner_for",
]


class Rule(NamedTuple):
    """Which tasks a refiner takes; None stands for any value."""

    vo: str | None
    prod_source_label: str | None
    task_type: str | None
    refiner: Refiner


# The first rule that fits decides. Refiners for a VO stand before the last line, which takes everything.
REFINERS: tuple[Rule, ...] = (
    Rule("atlas", "managed", None, refine_production),
    Rule("atlas", "user", None, refine_analysis),
    Rule("atlas", None, "prod", refine_production),
    Rule("atlas", None, "anal", refine_analysis),
    Rule(None, None, None, refine_in_two),
)


def refiner_for(vo: str, prod_source_label: str, task_type: str, rules: Sequence[Rule] = REFINERS) -> Refiner:
    """The refiner of a task. Raises CannotRefine when no rule fits."""
    wanted = (vo, prod_source_label, task_type)
    for rule in rules:
        if all(own is None or own == given for own, given in zip(rule[:3], wanted, strict=True)):
            return rule.refiner
    raise CannotRefine(f"No refiner takes tasks of vo {vo}, label {prod_source_label} and type {task_type}.")


def refine(
    params: TaskParams,
    *,
    task_id: int,
    user: str,
    now: datetime,
    parent: ParentView | None = None,
    defaults: Defaults | None = None,
    constituents: Mapping[str, Sequence[str]] | None = None,
    policy: Policy | None = None,
    preprocessed: Mapping[str, str] | None = None,
    rules: Sequence[Rule] = REFINERS,
) -> Refined:
    """Turn checked parameters into a task with datasets and templates.

    `user` is the owner, decided by the caller. `constituents` gives the datasets of the containers that
    `containers_of(params)` names; a container that is not in it is used as one dataset. `policy` is what configuration
    and chance decide, `preprocessed` what a preprocessing step found.
    Raises CannotRefine when the task is broken, NotYet when it has to wait, ParamErrors when the dictionary that a
    refiner completed is not valid.
    """
    defaults = defaults or Defaults()
    request = Request(
        params, task_id, user, now, parent, defaults, constituents or {}, policy or Policy(), preprocessed
    )
    refiner = refiner_for(params.vo or defaults.vo, params.prod_source_label, params.task_type, rules)
    return refiner(request)
