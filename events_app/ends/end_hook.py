"""What `tasks_app` asks of the ends of jobs of event service: see `tasks_app.outcomes.end_hooks`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import psycopg

from events_app.consumers.copying import hand_over, hand_over_inputs
from events_app.ends import (
    clone_end,
    consumer_end,
    fine_end,
    jobset_facts,
    jobset_kill,
    jobset_lines,
    jumbo_end,
    merge_end,
    merge_inputs,
)
from events_app.ends.jobset_lines import ABORTED, ENDED_BY_LINE, LINES, UNUSED
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from events_app.lifecycle.range_ends import end_consumer
from events_app.rules.event_jobs import EventJobKind
from tasks_app.domain.states import JOB_QUEUED, JobStatus
from tasks_app.outcomes.end_hooks import EVENT_MERGE, Ending, Ends
from tasks_app.outcomes.job_outcome import Outcome

CONSUMERS: Final = frozenset({EventJobKind.CONSUMER, EventJobKind.CO_JUMBO})
"""Kinds of jobs whose jobsets are kept here."""
ENDED_HERE: Final = CONSUMERS | {EVENT_MERGE, EventJobKind.CLONE, EventJobKind.FINE}
BY_THEMSELVES: Final = frozenset({JobStatus.FINISHED, JobStatus.FAILED})
"""How jobs end that nobody kills."""


class EventEnds:
    """The hook. Jobsets are held before anything is read of them, all of a transaction at once."""

    @property
    def words(self) -> Collection[str]:
        """The words of lines that end jobs later."""
        return LINES

    def of_line(self, job_id: int, task_id: int, word: str, said: Mapping[str, Any]) -> Outcome:
        """How the job of a line ends."""
        return jobset_lines.outcome_of(job_id, task_id, word, said)

    def ends(self, cursor: psycopg.Cursor[Any], endings: Sequence[Ending]) -> Ends:
        """What becomes of jobs, one after the other in the order of their numbers, so that each sees what the one before
        it has left."""
        jobset_facts.hold(cursor, (ending.job.jobset_id for ending in endings))
        turn = Turn(
            cursor,
            batch={ending.job.job_id for ending in endings},
            rules=jobset_facts.rules_of({ending.job.task_id for ending in endings}),
            queues=jobset_facts.queues_of({ending.job.site for ending in endings}),
            by_line={ending.job.job_id for ending in endings if ending.outcome.sub_status in ENDED_BY_LINE},
            awaited=jobset_lines.awaited(
                cursor,
                {e.job.job_id for e in endings if e.job.status == JobStatus.MERGING and not e.outcome.merge_is_over},
            ),
        )
        for ending in endings:
            became = _end(turn, ending)
            turn.ended.add(ending.job.job_id)
            if became is not None:
                turn.outcomes.append(replace(became, outputs_needed=False) if _gave_way(became) else became)
        return Ends(turn.outcomes, turn.jobs, turn.logs, turn.unused, turn.partial)

    def given_up(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int] | None) -> Mapping[int, int]:
        """How many events of partial files were given up, by dataset."""
        return jobset_ranges.given_up_of_partial(cursor, task_id, files)

    def lose_merged(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
        """The outputs of these files are no more."""
        jobset_ranges.lose_merged(cursor, task_id, files)

    def merged_and_ready(self, cursor: psycopg.Cursor[Any], task_id: int) -> Collection[int]:
        """Files that are not in use and have events in an output that counts."""
        return jobset_ranges.merged_and_ready(cursor, task_id)

    def awaiting_merge(self, cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> Collection[int]:
        """Those of these files of which some events are finished, and wait in zip files to be merged."""
        return merge_inputs.awaiting_merge(cursor, task_id, files)


def _gave_way(became: Outcome) -> bool:
    """Whether a job was closed since its jobset goes on, or is done, without it: not with a jobset that failed."""
    return became.status == JobStatus.CLOSED and became.sub_status != LINES[ABORTED].sub_status


def _end(turn: Turn, ending: Ending) -> Outcome | None:
    said, job = ending
    if job.event_service == EventJobKind.JUMBO:
        return jumbo_end.end(turn, ending)
    if said.merge_is_over or job.event_service not in ENDED_HERE:
        return said
    if said.sub_status in ENDED_BY_LINE:
        return _end_by_line(turn, ending)
    if job.event_service == EVENT_MERGE:
        return merge_end.end(turn, ending)
    if job.event_service == EventJobKind.CLONE:
        return clone_end.end(turn, ending)
    if job.event_service == EventJobKind.FINE and said.status in BY_THEMSELVES:
        return fine_end.end(turn, ending)
    if said.status in BY_THEMSELVES or jobset_kill.leaves_jobset(said):
        return consumer_end.end(turn, ending)
    return jobset_kill.end(turn, ending)


def _end_by_line(turn: Turn, ending: Ending) -> Outcome | None:
    """End a job of a jobset that goes on, or has ended, without it. None: a pilot has fetched it meanwhile, and it goes on."""
    said, job = ending
    if said.diag == jobset_lines.NOTHING_LEFT and job.status not in JOB_QUEUED:
        return None
    if job.event_service in CONSUMERS:
        end_consumer(turn.cursor, job.task_id, job.job_id, only_failed_count=True)
    others = [
        member.job_id for member in turn.members(job.jobset_id) if member.job_id != job.job_id and member.is_active
    ]
    if job.event_service == EventJobKind.CLONE and others:
        hand_over_inputs(turn.cursor, job.task_id, [job.job_id], others[0])
    if said.sub_status == LINES[UNUSED].sub_status and others:
        hand_over(turn.cursor, job.task_id, [job.job_id], others[0])
    return said
