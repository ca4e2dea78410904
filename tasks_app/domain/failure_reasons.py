"""Reasons for which packages of workflows fail, and how often they are restarted for each. Pure.

A reason is a category of errors (`fingerprints`), one of a few narrower words, or the exit code of the package's command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.domain.fingerprints import CATEGORIES, category_of
from tasks_app.domain.job_errors import OUTPUT_MISSING, PAYLOAD, JobError
from tasks_app.domain.retry_rules import site_end

ANY: Final = "any"
"""Limits the restarts after all failures that have no limit of their own: it counts them together."""
PLATFORM: Final = "platform failure"
LOOPING: Final = "looping"
SEG_FAULT: Final = "seg fault"
MISSING_OUTPUT: Final = "missing output"
_OF_PILOTS: Final[Mapping[str, str]] = {"1150": LOOPING, str(OUTPUT_MISSING): MISSING_OUTPUT}
_SEGMENTATION: Final = ("139", "-11")
"""Exit codes of a command that signal 11 has ended."""
REASONS: Final = (LOOPING, MISSING_OUTPUT, SEG_FAULT, PLATFORM, *CATEGORIES, ANY)
EXIT: Final = re.compile(r"exit -?[1-9][0-9]{0,9}")


def is_reason(text: str) -> bool:
    """Whether restarts can be limited by it: one of REASONS, or `exit 14`."""
    return text in REASONS or EXIT.fullmatch(text) is not None


def reasons_of(error: JobError | None) -> tuple[str, ...]:
    """All reasons that a failure has, the narrowest first; `any` is the last. None: no part said why."""
    if error is None:
        return ("unknown", ANY)
    category = category_of(error.component, error.code)
    found = [_OF_PILOTS.get(error.code, "")] if error.component == "pilot" else []
    if error.component in PAYLOAD and error.number:
        found += [f"exit {error.number}", SEG_FAULT if error.code in _SEGMENTATION else ""]
    found += [PLATFORM if category == "lost" else "", category, ANY]
    return tuple(filter(None, found))


def limited_as(errors: Sequence[JobError], limits: Mapping[str, int]) -> str:
    """The reason by whose limit a failure counts, from its errors, the most telling first: the narrowest that has one, or else
    `any`. "" when the site itself has ended the job: that counts for nothing."""
    if site_end(errors):
        return ""
    return next((one for one in reasons_of(errors[0] if errors else None) if one in limits), ANY)


def history_of(failures: Iterable[Sequence[JobError]], limits: Mapping[str, int]) -> dict[str, int]:
    """How many failures, each by its errors, count for which limit."""
    found: dict[str, int] = {}
    for errors in failures:
        if reason := limited_as(errors, limits):
            found[reason] = found.get(reason, 0) + 1
    return found


@dataclass(frozen=True, slots=True)
class Failed:
    """What a failure does to a package: its history with it, and whether it restarts by itself."""

    history: Mapping[str, int]
    restarts: bool


def failed(reason: str, history: Mapping[str, int], limits: Mapping[str, int]) -> Failed:
    """A package has failed for a reason: that counts first, then the limit of restarts for the reason decides; without one
    the package stays failed."""
    counts = {**history, reason: history.get(reason, 0) + 1}
    return Failed(counts, counts[reason] <= limits.get(reason, limits.get(ANY, 0)))
