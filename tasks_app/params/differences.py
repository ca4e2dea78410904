"""What a second submission of a task has otherwise than the task, and running the task again would not take over."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tasks_app.params.buildstep import archives_of, with_sandbox
from tasks_app.params.items import Item
from tasks_app.params.schema import ParamErrors, TaskParams, parse

COMMAND, INPUTS, OUTPUTS, SOFTWARE = "another command", "other inputs", "other outputs", "other software"
STEPS: Final = ("buildSpec", "mergeSpec", "preproSpec", "multiStepExec")
_SOFTWARE: Final = ("architecture", "transUses", "transHome")
_FILLED_IN: Final = ("transPath", "container_name")
"""Software that the refiner fills in where a submission says nothing."""
_NAMES: Final = frozenset(
    {"taskName", "uniqueTaskName", "userName", "vo", "prodSourceLabel", "taskType", "osInfo", "sourceURL"}
)
"""Of no weight for what the task does: who submits it, under which name and from where."""
ARCHIVE: Final = "SANDBOX"
_OUTPUT_MAP: Final = re.compile(r"""\s*-o "\{.*\}"\s*""", re.DOTALL)
"""prun's list of local names and the outputs that they become: it says nothing of the command."""


@dataclass(frozen=True, slots=True)
class Differences:
    """`work`: what makes it another task (`another command`). `keys`: parameters that would keep their old values.

    `code`: whether its sandbox is another one, which only `fixedSandbox` brings to a task that exists.
    """

    work: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    code: bool = False


def differences(new: TaskParams, stored: Mapping[str, Any], taken_over: Collection[str]) -> Differences:
    """Compare a submission with the parameters of the task of its name, which the refiner may have completed since.

    `taken_over`: keys that running again takes from the submission.
    """
    try:
        old = parse(dict(stored), stored=True)
    except ParamErrors:
        return Differences()
    work = [what for what, one, other in _compared(new, old) if one != other]
    told = {"jobParameters", "log", "log_merge", *STEPS, *_SOFTWARE, *_FILLED_IN, *_NAMES, *taken_over}
    keys = sorted(
        name
        for name, value in new.raw.items()
        if name not in told and not name.startswith("dsFor") and value and value != old.raw.get(name)
    )
    code = "fixedSandbox" not in new.raw and _archives(new) != _archives(old)
    return Differences(tuple(work), tuple(keys), code)


def _compared(new: TaskParams, old: TaskParams) -> Iterator[tuple[str, object, object]]:
    added = frozenset(new.datasets_for)
    filled_in = [name for name in _FILLED_IN if new.raw.get(name)]
    yield COMMAND, _command(new, old), _command(old, new)
    yield INPUTS, _inputs(new, added), _inputs(old, added)
    yield OUTPUTS, _outputs(new), _outputs(old)
    yield SOFTWARE, _given(new.raw, (*_SOFTWARE, *filled_in)), _given(old.raw, (*_SOFTWARE, *filled_in))


def _command(params: TaskParams, other: TaskParams) -> object:
    """The command line without names of sandboxes, and what the steps run; of those, what both may have said."""
    texts = (item for item in params.items if _is_text(item) and not _OUTPUT_MAP.fullmatch(item.value))
    line = [(item.raw.get("padding", True), _without_archive(item.value)) for item in texts]
    return line, [_step(params.raw.get(name), other.raw.get(name)) for name in STEPS]


def _step(step: Any, other: Any) -> object:
    if not isinstance(step, Mapping) or not isinstance(other, Mapping):
        return bool(step)
    return {
        name: _without_archive(value) if isinstance(value, str) else value
        for name, value in step.items()
        if name != "archiveName" and (name != "transPath" or "transPath" in other)
    }


def _without_archive(text: str) -> str:
    return with_sandbox(text, ARCHIVE)


def _is_text(item: Item) -> bool:
    return item.param_type not in ("input", "pseudo_input", "output", "log") and not item.flag("es_only")


def _inputs(params: TaskParams, added: Collection[str]) -> list[dict[str, Any]]:
    """Inputs as they were submitted. Datasets of a stream to which the new submission adds some are taken over."""
    items = (item for item in params.items if item.param_type in ("input", "pseudo_input"))
    return [
        # PanDA's client makes up a new name of the container each time.
        {
            k: bool(v) if k == "consolidate" else v
            for k, v in item.raw.items()
            if k != "dataset" or item.stream not in added
        }
        for item in items
    ]


def _outputs(params: TaskParams) -> list[object]:
    items = [item for item in params.items if item.param_type in ("output", "log")]
    maps = [item.value for item in params.items if _is_text(item) and _OUTPUT_MAP.fullmatch(item.value)]
    return [*maps, *(item.raw for item in (*items, *params.logs, *params.merge_logs))]


def _given(raw: Mapping[str, Any], names: Collection[str]) -> list[Any]:
    return [raw.get(name) or None for name in names]


def _archives(params: TaskParams) -> list[str]:
    """The sandboxes that jobs fetch."""
    return archives_of(params.raw, " ".join(item.value for item in params.items))
