"""The post-processor: sees when a task has nothing left to do, and gives it its final status."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.outcomes import queries
from tasks_app.outcomes.finishing import ME, await_more, finish, prepare, resume_scouting
from tasks_app.outcomes.preprocessing_ends import ENDED, end_preprocessing
from tasks_app.outcomes.task_progress import book_progress
from tasks_app.scouts import scouting

LIMIT = 100
_WORKING = (TaskStatus.RUNNING, TaskStatus.READY)
_ENDING = (TaskStatus.PREPARED, TaskStatus.PASSED, TaskStatus.TOBROKEN, TaskStatus.TOABORT)


@agent("post_processor", every="3s", title="Gives tasks without work left their final status")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Judge scouts; move complete tasks to prepared, and prepared, broken or aborted ones to their final status."""
    now = now or timezone.now()
    judge = partial(scouting.look_at_scouts, by=ME, now=now)
    scouts = claims.claim_tasks(
        owner(), [TaskStatus.SCOUTING], limit, condition=scouting.due(now), even_waiting=True, agent=ME
    )
    items = claims.for_each(scouts, judge, by=ME)
    items += _each((*_WORKING, TaskStatus.THROTTLED), queries.COMPLETE, prepare, limit)
    items += _each([TaskStatus.PREPROCESSING], ENDED, partial(end_preprocessing, by=ME), limit)
    items += _each(_WORKING, queries.AWAITS_MORE, await_more, limit)
    items += _each([TaskStatus.READY], queries.SCOUTS_ENDED, resume_scouting, limit)
    ending = claims.claim_tasks(owner(), _ENDING, limit, agent=ME)
    items += claims.for_each(ending, finish, by=ME)
    book_progress()
    return Pass(items, more=len(ending) == limit)


def _each(statuses: Iterable[str], condition: str, work: Callable[[int, int], None], limit: int) -> int:
    return claims.for_each(claims.claim_tasks(owner(), statuses, limit, condition=condition, agent=ME), work, by=ME)
