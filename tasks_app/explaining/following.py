"""How advice on a task is followed: by which act of the site, and with which number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from brokerage_app.advice.task_remedies import Remedy
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.params.acts import NEEDS, Change

_COMMANDS: Final = (("reassign the task", TaskCommand.REASSIGN), ("kill the task", TaskCommand.KILL))
_WORD: Final = re.compile(r"[A-Za-z]+")
_ACT_OF: Final = {
    **dict.fromkeys(NEEDS, Change.NEEDS.value),
    "nFilesPerJob": Change.SPLIT_RULE.value,
    "currentPriority": Change.PRIORITY.value,
}
_STATUS: Final = re.compile(r'site\.(.+)\.status="online"')
_PART_OF_CPU_TIME: Final = re.compile(r"the cpuTime of the task to ([0-9.]+) % of what it is")


def acts_of(remedy: Remedy) -> Iterator[str]:
    """The acts on the task that the advice names, which may be of several pieces: commands first."""
    for words, command in _COMMANDS:
        if words in remedy.what.lower():
            yield command.value
    yield from dict.fromkeys(_ACT_OF[word] for word in _WORD.findall(remedy.what) if word in _ACT_OF)


def queue_of(remedy: Remedy) -> str:
    """The queue whose status is to be changed; "" where the advice is of something else."""
    found = next(filter(None, map(_STATUS.fullmatch, remedy.lines)), None)
    return str(found[1]) if found is not None else ""


def with_cpu_time(remedy: Remedy, now: int | None, unit: str) -> Remedy:
    """The advice with the CPU time that the task is to have in place of a percentage, as its form takes it.

    A part that is less than 1 stays one: the books hold whole numbers.
    """

    def told(found: re.Match[str]) -> str:
        value = int((now or 0) * Decimal(found[1]) / 100)
        words = unit.removesuffix("Fixed").replace("PerEvent", " an event")
        return f"the cpuTime of the task from {now} to {value} {words}".rstrip() if value else found[0]

    return replace(remedy, what=_PART_OF_CPU_TIME.sub(told, remedy.what))
