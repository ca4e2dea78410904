"""Rules on tasks: those that stand still, that ask for a person, that wait for data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from jedisite.vocabulary.words import plural, some
from tasks_app.attention.rules.attention_facts import CopyFact, TaskFact
from tasks_app.attention.rules.findings import Found, address, few, hours, sentence, waits

STUCK_AFTER: Final = timedelta(hours=6)
"""Without a new job and without progress, while nobody is asked and no job runs."""
ASKS_AFTER: Final[Mapping[str, timedelta]] = {
    "exhausted": timedelta(),
    "pending": timedelta(hours=12),
    "throttled": timedelta(hours=12),
}
"""How long a task may be in a state before that is somebody's business."""
STAGING_AFTER: Final = timedelta(hours=12)
COPIES_AFTER: Final = timedelta(hours=1)
"""Input that somebody has to help is told of sooner than input that only takes its time."""
TASKS_NAMED: Final = 3
_WORDS: Final = {
    "exhausted": "is exhausted and has waited for a decision",
    "pending": "has made no progress",
    "throttled": "is held back",
}


def stuck(tasks: Iterable[TaskFact], now: datetime) -> Iterator[Found]:
    """Tasks that made no job and no progress for hours although nothing holds them but the system, with the reason."""
    found = []
    for task in sorted(tasks, key=lambda t: (t.since, t.id)):
        age = now - task.since
        if age < STUCK_AFTER:
            continue
        why = f"{waits(task.queued_jobs, 'job')} for a pilot" if task.queued_jobs else ""
        text = sentence(f"{_name(task)} ({task.status}): no new job and no progress for {_age(age)}", why, task.reason)
        size = round(age.total_seconds() / 3600)
        found.append(Found("stuck_task", str(task.id), text, _why(task), task.user, size, "h", task.since))
    yield from few(found, "tasks make no progress", _list("ready,running,scouting,defined"))


def asks_a_person(tasks: Iterable[TaskFact], now: datetime) -> Iterator[Found]:
    """Tasks that continue only after a decision, and tasks that have been held back for long."""
    by_status: dict[str, list[Found]] = {status: [] for status in ASKS_AFTER}
    for task in sorted(tasks, key=lambda t: (t.since, t.id)):
        age = now - task.since
        if task.status not in ASKS_AFTER or age < ASKS_AFTER[task.status]:
            continue
        text = sentence(f"{_name(task)} {_WORDS[task.status]} for {_age(age)}", task.reason)
        size = round(age.total_seconds() / 3600)
        by_status[task.status].append(Found("asks", str(task.id), text, _page(task), task.user, size, "h", task.since))
    for status, found in by_status.items():
        yield from few(found, f"tasks are {status}", _list(status))


def data_stalls(tasks: Iterable[TaskFact], copies: Iterable[CopyFact], now: datetime) -> Iterator[Found]:
    """What keeps inputs from arriving, with all tasks that wait for it; then tasks whose input has been in staging for too
    long for no such cause, or has missing files."""
    stalls = [one for one in copies if now - one.since >= (STAGING_AFTER if one.passes else COPIES_AFTER)]
    yield from few(
        [
            _stall(one, now)
            for one in sorted(stalls, key=lambda one: (-len(one.tasks), one.since, one.code, one.subject))
        ],
        "causes keep input files from arriving",
        address("transfers"),
    )
    told = frozenset[int]().union(*(one.tasks for one in stalls))
    found = []
    for task in sorted(tasks, key=lambda t: (-t.missing_files, t.since, t.id)):
        age = now - task.since
        if task.status == "staging" and age >= STAGING_AFTER and task.id not in told:
            text = sentence(f"{_name(task)}: its input has been on its way from tape for {_age(age)}", task.reason)
            found.append(Found("data", f"staging:{task.id}", text, _page(task), task.user, 0, "", task.since))
        elif task.missing_files:
            number = task.missing_files
            text = sentence(f"{_name(task)}: {number} input {'file is' if number == 1 else 'files are'} missing")
            found.append(Found("data", f"missing:{task.id}", text, _page(task), task.user, number, "files", None))
    yield from few(found, "tasks wait for data", _list("staging,defined,ready,running,pending"))


def _stall(copies: CopyFact, now: datetime) -> Found:
    files, number = plural(copies.files, "file"), len(copies.tasks)
    named = some(map(str, sorted(copies.tasks)), TASKS_NAMED)
    who = f"{plural(number, 'task')} ({named}) {'waits' if number == 1 else 'wait'} for {files}"
    if not number:
        who = f"{files} {'is' if copies.files == 1 else 'are'} waited for"
    text = sentence(f"{who}, the oldest for {_age(now - copies.since)}: {copies.said}")
    key = f"copies:{copies.code}:{copies.subject}"[:150]
    return Found("data", key, text, address("transfers"), "", copies.files, "files", copies.since)


def _name(task: TaskFact) -> str:
    return f"Task {task.id} {task.name[:80]}".strip()


def _age(age: timedelta) -> str:
    return hours(age.total_seconds())


def _page(task: TaskFact) -> str:
    return address("tasks", task.id)


def _why(task: TaskFact) -> str:
    return address("tasks", task.id, "why")


def _list(status: str) -> str:
    return f"{address('tasks')}?status={status}"
