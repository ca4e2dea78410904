"""The JumboWatchDog: which tasks get jumbo jobs, which lose them, and which are hurried. Pure.

Events that remain are those that no job has processed. Of tasks that are to get jumbo jobs those with the most go first.
The running system hurries tasks that are *less* than PROG_TO_BOOST per cent done, while its log says *more*: here it is more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from brokerage_app.policy.configuration import Configuration
from jedisite.vocabulary.words import thousands
from tasks_app.domain.jumbo_use import ENABLED, UseJumbo

COMPONENT: Final = "jumbo_dog"
BOOST_PRIORITY: Final = 900


@dataclass(frozen=True, slots=True)
class JumboLimits:
    """The parameters JUMBO_*, in events, tasks, jobs, per cent and files; each field has the name of its parameter.

    `min_events_enable` and `max_events` follow the others where the configuration does not give them.
    """

    max_tasks: int = 1
    min_events_disable: int = 100_000
    min_events_enable: int = 1_000_000
    max_events: int = 500_000
    per_task: int = 1
    per_site: int = 1
    max_curr_prio: int = 500
    prog_to_boost: int = 95
    max_files_to_boost: int = 500
    prio_disabled: int = 500

    @classmethod
    def from_configuration(cls, configuration: Configuration, vo: str = "") -> JumboLimits:
        def get(key: str) -> int | None:
            value = configuration.get(COMPONENT, key, vo=vo)
            return None if value is None else int(value)

        def number(key: str) -> int:
            return get(key) or 0

        tasks, disable = number("JUMBO_MAX_TASKS"), number("JUMBO_MIN_EVENTS_DISABLE")
        enable, most = get("JUMBO_MIN_EVENTS_ENABLE"), get("JUMBO_MAX_EVENTS")
        enable = 10 * disable if enable is None else enable
        return cls(
            tasks,
            disable,
            enable,
            tasks * enable // 2 if most is None else most,
            number("JUMBO_PER_TASK"),
            number("JUMBO_PER_SITE"),
            number("JUMBO_MAX_CURR_PRIO"),
            number("JUMBO_PROG_TO_BOOST"),
            number("JUMBO_MAX_FILES_TO_BOOST"),
            number("JUMBO_PRIO_DISABLED"),
        )


@dataclass(frozen=True, slots=True)
class JumboTask:
    """A task of event service, as the watch dog sees it.

    events, left      of its masters: all, and those that remain
    files_left        files that have not ended
    is_bound          it names one site: jumbo jobs are nothing to it
    by_position       ranges count from the beginning of each file, or each job has one file
    has_jumbo_queue   a queue for jumbo jobs takes it
    """

    task_id: int
    use: UseJumbo | None = None
    events: int = 0
    left: int = 0
    priority: int = 0
    files_left: int = 0
    is_bound: bool = False
    by_position: bool = True
    has_jumbo_queue: bool = True

    @property
    def is_active(self) -> bool:
        return self.use in ENABLED

    @property
    def done_percent(self) -> int:
        return (self.events - self.left) * 100 // self.events if self.events > 0 else 0


class JumboAct(Enum):
    ENABLE = "enable"
    DISABLE = "disable"
    RAISE = "raise"
    BOOST = "boost"


class JumboStep(NamedTuple):
    """What is done with a task, and why in a sentence. `priority`: its new current priority; None leaves it."""

    task_id: int
    act: JumboAct
    sentence: str
    priority: int | None = None


def watch(tasks: Iterable[JumboTask], limits: JumboLimits) -> list[JumboStep]:
    """What is to be done, in this order: switch off, raise priorities, hurry, switch on. A task may get two steps."""
    found = sorted(tasks, key=lambda task: task.task_id)
    off = [step for task in found if (step := _disable(task, limits)) is not None]
    gone = {step.task_id for step in off}
    disabled = [task for task in found if task.use is UseJumbo.DISABLED or task.task_id in gone]
    rest = [task for task in found if task.is_active and task.task_id not in gone]
    raised = [_raised(task, limits) for task in disabled if task.priority < limits.prio_disabled]
    hurried = [_hurried(task) for task in found if task.use is not None and is_hurried(task, limits)]
    skipped = {step.task_id for step in hurried}
    return [
        *off,
        *(step for step in raised if step.task_id not in skipped),
        *hurried,
        *_enabled(found, rest, limits),
    ]


def _disable(task: JumboTask, limits: JumboLimits) -> JumboStep | None:
    if not task.is_active or task.is_bound or task.left >= limits.min_events_disable:
        return None
    said = f"{thousands(task.left)} events remain, fewer than JUMBO_MIN_EVENTS_DISABLE ({thousands(limits.min_events_disable)})"
    return JumboStep(task.task_id, JumboAct.DISABLE, f"jumbo jobs are switched off: {said}")


def _raised(task: JumboTask, limits: JumboLimits) -> JumboStep:
    said = "without jumbo jobs the task gets the priority JUMBO_PRIO_DISABLED"
    return JumboStep(task.task_id, JumboAct.RAISE, said, limits.prio_disabled)


def is_hurried(task: JumboTask, limits: JumboLimits) -> bool:
    """Whether a task is so nearly done, and has so few files left, that it gets priority 900."""
    return (
        task.events > 0
        and task.done_percent > limits.prog_to_boost
        and task.priority < BOOST_PRIORITY
        and task.files_left < limits.max_files_to_boost
    )


def _hurried(task: JumboTask) -> JumboStep:
    said = f"{task.done_percent} % of its events are processed and {thousands(task.files_left)} files are left"
    return JumboStep(task.task_id, JumboAct.BOOST, f"the task is hurried: {said}", BOOST_PRIORITY)


def is_candidate(task: JumboTask, limits: JumboLimits) -> bool:
    """Whether a task without jumbo jobs may get them."""
    return (
        task.use is None
        and not task.is_bound
        and task.left > limits.min_events_enable
        and task.priority < limits.max_curr_prio
        and task.by_position
        and task.has_jumbo_queue
    )


def _enabled(tasks: Sequence[JumboTask], active: Sequence[JumboTask], limits: JumboLimits) -> list[JumboStep]:
    number, events = len(active), sum(task.left for task in active)
    steps = []
    for task in sorted((one for one in tasks if is_candidate(one, limits)), key=lambda one: (-one.left, one.task_id)):
        if number >= limits.max_tasks or events >= limits.max_events:
            break
        number, events = number + 1, events + task.left
        said = f"{thousands(task.left)} events remain, more than JUMBO_MIN_EVENTS_ENABLE ({thousands(limits.min_events_enable)})"
        steps.append(JumboStep(task.task_id, JumboAct.ENABLE, f"jumbo jobs are switched on: {said}"))
    return steps
