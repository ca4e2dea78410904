"""Numbers, times and states in words, for the pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from jedisite.vocabulary.words import grouped
from tasks_app.domain.states import TASK_FINAL, JobStatus, TaskStatus

COUNT_CAP: Final = 10_000
"""Lists are counted up to here; beyond it "10 000+" is said."""

TONES: Final[Mapping[str, str]] = {
    # work goes on
    **dict.fromkeys(("scouting", "scouted", "running", "prepared", "picked", "working"), "run"),
    **dict.fromkeys(("sent", "starting", "transferring", "merging", "active"), "run"),
    # workflows and their packages
    **dict.fromkeys(("launched",), "run"),
    **dict.fromkeys(("successful",), "ok"),
    **dict.fromkeys(("held",), "warn"),
    # shares
    **dict.fromkeys(("on target",), "ok"),
    **dict.fromkeys(("over target",), "run"),
    **dict.fromkeys(("starved", "urgent only", "nothing runs"), "warn"),
    **dict.fromkeys(("little work", "no target", "idle"), "wait"),
    # ended well
    **dict.fromkeys(("done", "finished", "merged", "online", "ok", "valid"), "ok"),
    # somebody should look
    **dict.fromkeys(("exhausted", "throttled", "paused", "pending", "toreassign"), "warn"),
    **dict.fromkeys(("holding", "partial", "notmerged", "test"), "warn"),
    # ended badly
    **dict.fromkeys(("failed", "broken", "tobroken", "lost", "missing", "offline", "error", "late", "refused"), "bad"),
    **dict.fromkeys(("fatal", "corrupted", "no attempt left"), "bad"),
    # taken out
    **dict.fromkeys(("aborted", "aborting", "toabort", "cancelled", "canceled", "discarded", "closed"), "off"),
    **dict.fromkeys(("brokeroff", "removed", "nooutput", "inactive", "expired", "revoked"), "off"),
    # answers of gates and brokers
    "yes": "ok",
    "chosen": "ok",
    "no": "bad",
    "skipped": "off",
    "not asked": "wait",
    "not reached": "off",
    # what changes between two decisions
    "gained": "ok",
    "other weight": "run",
    "other reason": "wait",
    "other numbers": "wait",
    # severity of refusals
    "info": "wait",
    "warning": "warn",
}
ICONS: Final = ("ok", "run", "wait", "warn", "bad", "off")


def tone(status: str | None, kind: str = "") -> str:
    """Tone of a status: ok, run, wait, warn, bad or off. It decides colour and icon; the word is always shown.

    `kind` is "task" for the status of a task: one that is finished did only a part of its input, one that is done all.
    """
    if kind == "task" and status == TaskStatus.FINISHED:
        return "warn"
    return TONES.get(status or "", "wait")


def count(number: int | float | None) -> str:
    """1234567 -> "1 234 567" with narrow spaces that do not break; None -> "–"."""
    if number is None:
        return "–"
    return grouped(number)


def hours(number: float) -> str:
    """Hours, never 0 of what is more than nothing: "1 234", "0.4", "under 0.1"."""
    if number >= 10 or number == 0:
        return count(round(number))
    return f"{number:.1f}" if number >= 0.1 else "under 0.1"


def capped(number: int, cap: int = COUNT_CAP) -> str:
    """A count that was stopped just above `cap`: "10 000+"."""
    return f"{count(cap)}+" if number > cap else count(number)


def plural(number: int, one: str, many: str = "") -> str:
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float | None) -> str:
    """Seconds in the two largest units: "2 h 10 min", "45 s", "3.2 s", "12 ms"; None -> "–".

    Nothing takes no time: what was measured as 0 was measured in whole seconds.
    """
    if seconds is None:
        return "–"
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds == 0:
        return "under 1 s"
    if seconds < 1:
        return f"{max(seconds * 1000, 1):.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    rest = round(seconds)
    parts: list[str] = []
    for size, unit in UNITS:
        amount, rest = divmod(rest, size)
        if amount or parts:
            parts.append(f"{amount} {unit}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago, in the largest unit: "3 min ago", "in 5 s"; None -> "–"."""
    if moment is None:
        return "–"
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    if size < 1:
        return "now"
    text = next(f"{int(size // unit)} {name}" for unit, name in UNITS if size >= unit)
    return f"{text} ago" if seconds > 0 else f"in {text}"


def size(number: float | None) -> str:
    """Bytes in the unit that fits (powers of 1000): "12.3 MB"; None -> "–"."""
    if number is None:
        return "–"
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} PB"


_UNITS: Final = {"MBPerCore": "MB a core", "HS06sPerEvent": "HS06 s an event", "mHS06sPerEvent": "mHS06 s an event"}


def unit(parameter: str) -> str:
    """A unit of the task parameters in words: "MBPerCoreFixed" -> "MB a core"."""
    plain = parameter.removesuffix("Fixed")
    return _UNITS.get(plain, plain.replace("PerEvent", " an event"))


def is_final_task(status: str) -> bool:
    return status in TASK_FINAL


JOB_TONE_ORDER: Final = [status.value for status in JobStatus]
