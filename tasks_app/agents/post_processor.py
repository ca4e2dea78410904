"""The post-processor: gives a task without work left its final status."""

from __future__ import annotations

from collections.abc import Collection
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
_STATES = (*_WORKING, TaskStatus.THROTTLED, TaskStatus.SCOUTING, TaskStatus.PREPROCESSING, *_ENDING)


@agent("post_processor", every="3s", title="Gives tasks without work left their final status")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Judge scouts; move complete tasks to prepared, and prepared, broken or aborted ones to their final status."""
    now = now or timezone.now()
    judge = partial(scouting.look_at_scouts, by=ME, now=now)
    there, items = claims.states_in_use(_STATES), 0

    def claim(
        statuses: Collection[str], condition: str = "TRUE", *, even_waiting: bool = False
    ) -> list[tuple[int, int]]:
        # What this pass has moved may be in a state that no task was in.
        if not items and there.isdisjoint(statuses):
            return []
        return claims.claim_tasks(owner(), statuses, limit, condition=condition, even_waiting=even_waiting, agent=ME)

    items += claims.for_each(claim([TaskStatus.SCOUTING], scouting.due(now), even_waiting=True), judge, by=ME)
    items += claims.for_each(claim((*_WORKING, TaskStatus.THROTTLED), queries.COMPLETE), prepare, by=ME)
    end_step = partial(end_preprocessing, by=ME)
    items += claims.for_each(claim([TaskStatus.PREPROCESSING], ENDED), end_step, by=ME)
    items += claims.for_each(claim(_WORKING, queries.AWAITS_MORE), await_more, by=ME)
    items += claims.for_each(claim([TaskStatus.READY], queries.SCOUTS_ENDED), resume_scouting, by=ME)
    ending = claim(_ENDING)
    items += claims.for_each(ending, finish, by=ME)
    if there & {*_WORKING, TaskStatus.SCOUTING}:
        book_progress()
    return Pass(items, more=len(ending) == limit)
