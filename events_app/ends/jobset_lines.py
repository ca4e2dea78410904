"""Lines in `job_output_report` that end other jobs of a jobset, whose rows are not locked from inside of it.

The adder books them in a later batch, like the reports of pilots; a job whose report is there already ends by that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.unneeded_consumers import ES_UNUSED
from jedisite.agents.passes import kick
from jedisite.database.sql import numbers, texts
from tasks_app.domain.states import JobStatus
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.unmerged import NOT_MERGED_ERROR

UNUSED: Final = ES_UNUSED
KILLED: Final = "es_killed"
ABORTED: Final = "es_aborted"
FAILED_WITH: Final = "es_failedwith"
MERGED: Final = "es_merged"
NOT_MERGED: Final = "es_notmerged"
CLONE_LOST: Final = "jc_unlock"


class Line(NamedTuple):
    """What a line does to its job: its state, its sub-status ("" leaves it), and the code of the task buffer, with a sentence
    that names the job which is the cause."""

    status: JobStatus
    sub_status: str
    code: int
    sentence: str
    merge_is_over: bool = False


LINES: Final[Mapping[str, Line]] = MappingProxyType(
    {
        UNUSED: Line(JobStatus.CLOSED, "es_unused", 116, "all ranges are processed: job {} merges them"),
        KILLED: Line(JobStatus.CANCELLED, "es_killed", 120, "job {} of its jobset was killed"),
        ABORTED: Line(JobStatus.CLOSED, "es_aborted", 121, "its jobset failed with job {}"),
        FAILED_WITH: Line(JobStatus.FAILED, "es_ass_failed", 121, "its jobset failed with job {}", merge_is_over=True),
        CLONE_LOST: Line(JobStatus.CLOSED, "jc_unlock", 200, "its clone {} came first"),
        MERGED: Line(JobStatus.FINISHED, "", 0, "", merge_is_over=True),
        NOT_MERGED: Line(
            JobStatus.FAILED, "es_merge_failed", NOT_MERGED_ERROR, "merge job {} failed", merge_is_over=True
        ),
    }
)
NOTHING_LEFT: Final = "no range of its jobset was left to be processed"
"""Why a consumer that no pilot has fetched is not needed, while the others still work."""
ENDED_BY_LINE: Final = frozenset(line.sub_status for line in LINES.values() if line.sub_status)
"""Sub-statuses of jobs that a line ends: that they end changes nothing of their jobset."""


def outcome_of(job_id: int, task_id: int, word: str, said: Mapping[str, Any]) -> Outcome:
    """How the job of a line ends."""
    line = LINES[word]
    by = said.get("by")
    return Outcome(
        job_id,
        task_id,
        line.status,
        "taskbuffer" if line.code else "",
        line.code,
        NOTHING_LEFT if word == UNUSED and by is None else line.sentence.format(by),
        sub_status=line.sub_status or None,
        merge_is_over=line.merge_is_over,
    )


def write(cursor: psycopg.Cursor[Any], task_id: int, jobs: Iterable[int], word: str, by_job: int) -> None:
    """The jobs are to be ended as the word says, on account of `by_job`."""
    ids = sorted(jobs)
    if ids:
        cursor.execute(
            """INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
               SELECT job, %s, 0, %s, jsonb_build_object('by', %s::bigint) FROM unnest(%s::bigint[]) job
               ON CONFLICT DO NOTHING""",
            [task_id, word, by_job, numbers(ids)],
        )
        kick("adder")


def write_for_merging(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    jobset_id: int,
    jobs: Collection[int],
    word: str,
    by_job: int,
    but: Collection[int],
) -> None:
    """The same for those jobs that wait for their merge: of a jobset, and of `jobs`; not for those that end in this
    transaction already."""
    cursor.execute(
        """SELECT pandaid FROM jobs WHERE eventservice > 0 AND jobstatus = 'merging' AND jobsetid = %s
           UNION SELECT pandaid FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND eventservice > 0 AND jobstatus = 'merging'""",
        [jobset_id, numbers(jobs)],
    )
    write(cursor, task_id, {job for (job,) in cursor.fetchall()} - set(but), word, by_job)


def awaited(cursor: psycopg.Cursor[Any], jobs: Collection[int]) -> set[int]:
    """Those of these jobs that a line waits for, and no report of a pilot."""
    if not jobs:
        return set()
    cursor.execute(
        "SELECT pandaid FROM job_output_report WHERE pandaid = ANY(%s::bigint[]) AND jobstatus = ANY(%s::text[])",
        [numbers(sorted(jobs)), texts(sorted(LINES))],
    )
    return {job for (job,) in cursor.fetchall()}
