"""The fields of a what-if form, turned into the lines of changes that `brokerage_app.advice.whatif` reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.stored import as_json

LARGEST: Final = 2**31 - 1
AS_IT_IS, EVERYWHERE = "", "everywhere"
MOST_NAMES: Final = 200


class WishError(ValueError):
    """A field that cannot be read; `field` is its name."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


@dataclass(frozen=True, slots=True)
class Wish:
    """One field of the form. `now` says what the decision was asked with; `lines` what a given text changes."""

    name: str
    label: str
    hint: str
    now: Callable[[TaskNeeds], str]
    lines: Callable[[str, TaskNeeds], list[str]]


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > LARGEST:
        raise WishError(name, f"{text[:40]!r} is not a whole number from 0 to {LARGEST}")
    return int(text)


def _names(name: str, text: str) -> list[str]:
    found = [part.strip() for part in text.replace(",", " ").split()]
    if len(found) > MOST_NAMES:
        raise WishError(name, f"{len(found)} names are given, the limit is {MOST_NAMES}")
    return found


def _line(name: str, value: Any) -> str:
    return f"needs.{name}={json.dumps(value)}"


def _memory(text: str, needs: TaskNeeds) -> list[str]:
    return [_line("memory_mb", _number("memory", text))]


def _cores(text: str, needs: TaskNeeds) -> list[str]:
    return [_line("cores", _number("cores", text))]


def _walltime(text: str, needs: TaskNeeds) -> list[str]:
    """The walltime as it is, wherever the job runs: what is known of CPU time no longer counts."""
    seconds = round(_number("walltime", text) * 3600)
    return [
        _line("cpu_hs06s", 0),
        _line("least_cpu_hs06s", 0),
        _line("walltime_s_per_mb", 0),
        _line("walltime_s", seconds),
        _line("walltime_known", True),
    ]


def _sites(text: str, needs: TaskNeeds) -> list[str]:
    """Only these queues; `*` is any, whatever the task said."""
    named = [] if text.strip() == "*" else _names("sites", text)
    return [
        _line("preassigned_site", ""),
        _line("listed_sites", []),
        _line("included_sites", named),
    ]


def _without(text: str, needs: TaskNeeds) -> list[str]:
    """Not these queues; `*` alone is: none is excluded."""
    return [_line("excluded_sites", [] if text.strip() == "*" else _names("without", text))]


def _data(text: str, needs: TaskNeeds) -> list[str]:
    """As if the input were of no concern, or a whole replica of it were at some endpoints, too."""
    if text.strip() == EVERYWHERE:
        return [_line("inputs", [])]
    endpoints = _names("data", text)
    if not needs.inputs:
        raise WishError("data", "the decision used no input data")
    inputs = as_json(needs)["inputs"]
    for data in inputs:
        whole = {"files": data.get("files", 0), "size_mb": data.get("size_mb", 0.0)}
        data["replicas"] = {**data.get("replicas", {}), **dict.fromkeys(endpoints, whole)}
    return [_line("inputs", inputs)]


def _walltime_now(needs: TaskNeeds) -> str:
    if needs.cpu_hs06s:
        return f"{needs.cpu_hs06s:.4g} HS06 s"
    return f"{needs.walltime_s / 3600:.4g} h" if needs.walltime_s else "not known"


def _of(names: Sequence[str], nothing: str) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else nothing


WISHES: Final[tuple[Wish, ...]] = (
    Wish("memory", "Memory", "MB", lambda n: f"{n.memory_mb} MB{' a core' if n.memory_per_core else ''}", _memory),
    Wish("cores", "Cores", "of one job", lambda n: "not stated" if n.cores is None else str(n.cores or "any"), _cores),
    Wish("walltime", "Walltime", "hours, at every site", _walltime_now, _walltime),
    Wish(
        "sites",
        "Only these sites",
        "names or patterns such as CERN*; * is any",
        lambda n: n.preassigned_site or _of(n.listed_sites or n.included_sites, "any"),
        _sites,
    ),
    Wish(
        "without",
        "Without these sites",
        "names or patterns; * takes all exclusions away",
        lambda n: _of(n.excluded_sites, "none"),
        _without,
    ),
    Wish(
        "data",
        "Input data",
        "endpoints that have it, too; or: everywhere",
        lambda n: _of([d.name for d in n.inputs], "none"),
        _data,
    ),
)


def lines_of(given: Mapping[str, str], needs: TaskNeeds) -> list[str]:
    """The changes that the filled fields of a form ask for, in the order of the form. Raises WishError."""
    return [line for wish in WISHES if (text := given.get(wish.name, "").strip()) for line in wish.lines(text, needs)]
