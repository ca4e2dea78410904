"""Consumers of a task with jumbo jobs that have not begun: those with nothing to do end, those that wait get a queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.db import transaction

from brokerage_app.grid.repository import resource_types
from events_app.jumbo.jumbo_places import slot_at
from events_app.lifecycle.waiting_files import count_waiting
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import JobStatus
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.input_copies import copy_place
from tasks_app.generation.turn_facts import TurnFacts
from tasks_app.lifecycle.job_moves import place_waiting
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book

ME: Final = "jumbo_jobs"


@transaction.atomic
def end_decided(task_id: int, jobs: Sequence[int], now: datetime) -> int:
    """End consumers of whose files no range is left, as if they had run. Returns how many have ended."""
    with hot_cursor() as cursor:
        ended = book(cursor, [Outcome(job, task_id, JobStatus.FINISHED, by=ME) for job in jobs], now)
        count_waiting(cursor, task_id)
    return ended


@transaction.atomic
def give_queues(turn: TurnFacts, jobs: Sequence[int], view: GridView) -> int:
    """Consumers that wait get the queues that take them now, as far as there is room. Returns how many.

    What no queue takes goes on waiting for jumbo jobs, and so does what a queue takes that has to fetch the input first.
    """
    decided, rest, moved = view.decide(turn.needs, turn.task, turn.now), list(jobs), 0
    kinds = resource_types() if decided.verdict.chosen else []
    with hot_cursor() as cursor:
        for choice in decided.verdict.chosen:
            site = view.site(choice.site)
            some = rest[: view.room(choice, decided)]
            if not some or copy_place(turn.needs, site, turn.facts.label or "") is not None:
                continue
            rest = rest[len(some) :]
            slot = slot_at(site, turn.needs, kinds)
            moved += place_waiting(
                cursor, some, slot, by=ME, reason=f"{site.queue} has room, so jumbo jobs need not do its ranges"
            )
            view.made(choice.site, len(some), turn.task, cores=turn.needs.cores_at(site))
        count_waiting(cursor, turn.task.id)
    return moved
