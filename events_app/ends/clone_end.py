"""The end of a clone: the first that finishes has the input, and the others of its jobset are closed, unless one is the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import psycopg
from django.db import transaction
from psycopg.types.numeric import Int8

from events_app.consumers.copying import hand_over_inputs
from events_app.ends import jobset_lines
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from events_app.lifecycle.range_ends import finish_clone, give_back
from events_app.lifecycle.range_handout import take
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import HANDED_OUT
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.range_jobs import CLONE
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending
from tasks_app.outcomes.job_outcome import Outcome

BY_ITSELF: Final = frozenset({JobStatus.FINISHED, JobStatus.FAILED})
_LOST: Final = jobset_lines.LINES[jobset_lines.CLONE_LOST]


def end(turn: Turn, ending: Ending) -> Outcome:
    """End a clone. While others are at work, one that has not won is closed, or ends as it was killed, and its outputs are
    nobody's. The last one ends as any job."""
    said, job = ending
    files = files_of(turn.cursor, job.task_id, job.job_id)
    members = [m for m in turn.members(job.jobset_id) if m.job_id != job.job_id and m.may_have_files]
    theirs = [job.job_id, *(member.job_id for member in members)]
    if not {file.owner for file in files} & set(theirs):
        return _without_outputs(said, "the output of another clone counts")
    others = [member.job_id for member in members if member.is_active and member.job_id not in turn.by_line]
    wins = said.status == JobStatus.FINISHED and finish_clone(turn.cursor, job.task_id, job.job_id, job.jobset_id)
    if not wins and others:
        give_back(turn.cursor, job.task_id, job.job_id)
        hand_over_inputs(turn.cursor, job.task_id, [job.job_id], others[0])
        return _without_outputs(said, f"its clone {others[0]} goes on")
    hand_over_inputs(turn.cursor, job.task_id, theirs, job.job_id)
    if not wins:
        ids = [file.file_id for file in files]
        jobset_ranges.end_jobset(turn.cursor, job.task_id, job.jobset_id, ids, keeps_events=False)
    turn.tell(job.task_id, theirs[1:], jobset_lines.CLONE_LOST, job.job_id)
    return said


def _without_outputs(said: Outcome, sentence: str) -> Outcome:
    """The end of a clone of which nothing counts but its log."""
    stored = tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES)
    if said.status not in BY_ITSELF:
        return replace(said, stored=stored, spares_attempt=False, outputs_needed=False)
    own = bool(said.component)
    return replace(
        said,
        stored=stored,
        outputs_needed=False,
        status=_LOST.status,
        sub_status=_LOST.sub_status,
        component=said.component if own else "taskbuffer",
        code=said.code if own else _LOST.code,
        diag=said.diag if own else sentence,
    )


# ruff: noqa: S608 - every piece is a constant of ours
_RUN_ONCE: Final = f"""
SELECT j.pandaid, j.jeditaskid, j.jobsetid FROM jobs j JOIN jedi_tasks t ON t.jeditaskid = j.jeditaskid
 WHERE j.pandaid = ANY(%s::bigint[]) AND t.splitrule ~ '(^|,)UC=1(,|$)'
   AND NOT EXISTS (SELECT FROM jedi_events e WHERE e.jeditaskid = j.jeditaskid AND e.pandaid = j.pandaid
                      AND {is_in(HANDED_OUT, "e.")})
 ORDER BY j.pandaid
"""
_OTHERS: Final = f"""
SELECT pandaid FROM jobs WHERE jobsetid = %s AND eventservice = {CLONE} AND pandaid <> %s
   AND jobstatus NOT IN ({", ".join(f"'{status}'" for status in sorted(JOB_FINAL))})
"""


def too_late(jobs: Iterable[int]) -> set[int]:
    """Of clones that were handed out just now: those that another one has come before, where one alone is to run (runonce).

    Who comes first has the one range of its jobset, and the others are to be ended. Two statements, and two for each.
    """
    late = set()
    with hot_cursor() as cursor:
        cursor.execute(_RUN_ONCE, [numbers(sorted(jobs))])
        for job, task, jobset in cursor.fetchall():
            with transaction.atomic():
                if not _is_first(cursor, job, task, jobset):
                    late.add(job)
    return late


def _is_first(cursor: psycopg.Cursor[Any], job: int, task: int, jobset: int) -> bool:
    is_first = bool(take(cursor, task, 1, "pandaid = %(job)s", {"job": Int8(job)}).blocks)
    cursor.execute(_OTHERS, [jobset, job])
    others = [other for (other,) in cursor.fetchall()]
    jobset_lines.write(cursor, task, others if is_first else [job], jobset_lines.CLONE_LOST, job)
    return is_first
