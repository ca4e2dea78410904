"""The kill of a consumer or of a merge job is that of its jobset. A job that is only to be made anew leaves it to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from events_app.consumers.copying import hand_over
from events_app.ends import jobset_lines
from events_app.ends.jobset_facts import files_of
from events_app.ends.jobset_turn import Turn
from events_app.lifecycle import jobset_ranges
from events_app.lifecycle.range_ends import end_consumer
from tasks_app.domain.killcodes import MADE_ANEW, Kill, killed_with
from tasks_app.domain.range_jobs import TOO_LONG
from tasks_app.domain.states import JOB_QUEUED, JobStatus
from tasks_app.models.dataset import LOG_TYPES
from tasks_app.outcomes.end_hooks import Ending
from tasks_app.outcomes.job_outcome import Outcome

LEFT_TO_OTHERS: Final = MADE_ANEW | {Kill.EXPIRED, Kill.EXPIRED_WAITING}
"""Kills of jobs that wait too long: other consumers of the jobset may do their part."""


def leaves_jobset(said: Outcome) -> bool:
    """Whether this is no kill of the jobset: the worker of the job ended without doing anything, or the job ran for too long,
    and others go on."""
    return said.sub_status == TOO_LONG or (
        said.component == "taskbuffer" and killed_with(said.code).code is Kill.EMPTY_WORKER
    )


def end(turn: Turn, ending: Ending) -> Outcome | None:
    """End a job that was killed, and the others of its jobset. None: it ends later, by the line that is there for it."""
    said, job = ending
    if job.status == JobStatus.MERGING and job.job_id in turn.awaited:
        return None
    rules = turn.rules[job.task_id]
    said = replace(said, stored=tuple(pair for pair in said.stored if pair[0].type in LOG_TYPES))
    members = [member for member in turn.members(job.jobset_id) if member.job_id != job.job_id]
    active = [member.job_id for member in members if member.is_active]
    waited = (
        job.status in JOB_QUEUED and said.component == "taskbuffer" and killed_with(said.code).code in LEFT_TO_OTHERS
    )
    if waited and active:
        hand_over(turn.cursor, job.task_id, [job.job_id], active[0])
        return replace(said, spares_attempt=False)
    files = [file.file_id for file in files_of(turn.cursor, job.task_id, job.job_id)]
    end_consumer(turn.cursor, job.task_id, job.job_id, only_failed_count=True)
    jobset_ranges.end_jobset(turn.cursor, job.task_id, job.jobset_id, files, keeps_events=rules.keeps_events)
    turn.tell(job.task_id, [member.job_id for member in members], jobset_lines.KILLED, job.job_id)
    return said
