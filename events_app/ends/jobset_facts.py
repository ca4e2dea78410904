"""What is read of jobsets while their consumers end: who of them is at work, their files, and the rules of their tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg

from brokerage_app.grid.describing import NO_CHANNEL
from brokerage_app.models import Queue
from events_app.ends.jobset_lines import CLONE_LOST, LINES, UNUSED
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import PROCESSED, EventStatus
from jedisite.database.sql import numbers, texts
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.models import Task
from tasks_app.outcomes.job_outcome import Cause
from tasks_app.params.splitrule import SplitRule

RETRIED_AT: Final = ("online", "brokeroff")
"""States of queues at which another consumer may follow one that has ended."""


def hold(cursor: psycopg.Cursor[Any], jobsets: Iterable[int]) -> None:
    """Wait until nobody else ends a job of these jobsets, and let nobody do so before this transaction ends.

    The rows of the jobs are locked before, whoever ends them; so two consumers that end at once see each other's ranges.
    """
    keys = [f"jobset {jobset}" for jobset in sorted(set(jobsets))]
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(k, 0)) FROM unnest(%s::text[]) k", [texts(keys)])


class Member(NamedTuple):
    """Another job of a jobset that has not ended. `line` is the word of a line that is to end it; None without one."""

    job_id: int
    status: JobStatus
    event_service: int
    line: str | None

    @property
    def is_active(self) -> bool:
        """It may still process ranges."""
        return self.line is None and self.may_have_files

    @property
    def may_have_files(self) -> bool:
        """While it has the files, they are those of a jobset that is at work: one that is not needed may have them still."""
        is_consumer = self.status != JobStatus.MERGING and self.event_service != EventJobKind.MERGE
        return is_consumer and self.line in (None, UNUSED, CLONE_LOST)


_MEMBERS: Final = f"""
SELECT j.pandaid, j.jobstatus, j.eventservice,
       (SELECT r.jobstatus FROM job_output_report r WHERE r.pandaid = j.pandaid AND r.jobstatus = ANY(%s::text[]))
  FROM jobs j
 WHERE j.jobsetid = %s AND j.eventservice > 0 AND j.jobstatus NOT IN ({", ".join(f"'{s}'" for s in sorted(JOB_FINAL))})
 ORDER BY j.pandaid
"""  # noqa: S608 - states


def members(cursor: psycopg.Cursor[Any], jobset_id: int, but: Collection[int]) -> list[Member]:
    """The jobs of a jobset that have not ended, but for those that end in this transaction already."""
    cursor.execute(_MEMBERS, [texts(sorted(LINES)), jobset_id])
    return [Member(job, JobStatus(status), *rest) for job, status, *rest in cursor.fetchall() if job not in but]


class JobsetFile(NamedTuple):
    """A file whose ranges a job processes or merges, and the job that has it; None when it is not in use."""

    file_id: int
    owner: int | None


def files_of(cursor: psycopg.Cursor[Any], task_id: int, job_id: int) -> list[JobsetFile]:
    """The files of a job whose ranges are processed."""
    cursor.execute(
        """SELECT c.fileid, CASE WHEN c.status = 'running' THEN c.pandaid END
             FROM (SELECT DISTINCT datasetid, fileid FROM job_files
                    WHERE pandaid = %s AND type IN ('input', 'pseudo_input') AND fileid IS NOT NULL) f
             JOIN jedi_dataset_contents c ON c.jeditaskid = %s AND c.datasetid = f.datasetid AND c.fileid = f.fileid
            WHERE c.keeptrack = 1 ORDER BY c.fileid""",
        [job_id, task_id],
    )
    return [JobsetFile._make(row) for row in cursor.fetchall()]


_COMMONEST: Final = f"""
SELECT e.error_code, regexp_replace(coalesce(e.error_diag, ''), '^in jumbo job [0-9]+(: |$)', '')
  FROM jedi_events e, generate_series(e.def_min_eventid, e.def_max_eventid, e.events_per_range) r (first)
 WHERE e.jeditaskid = %(task)s AND e.fileid = ANY(%(files)s::bigint[]) AND {is_in({EventStatus.FAILED}, "e.")}
   AND e.error_code <> 0
   AND NOT EXISTS (SELECT FROM jedi_events p WHERE p.jeditaskid = %(task)s AND p.fileid = e.fileid AND {is_in(PROCESSED, "p.")}
                      AND r.first BETWEEN p.def_min_eventid AND p.def_max_eventid)
 GROUP BY 1, 2 ORDER BY count(*) DESC, max(e.row_id) DESC LIMIT 1
"""  # noqa: S608 - states


def commonest_error(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> Cause | None:
    """What pilots said of most of the ranges of these files that failed and were not processed after that; None where they
    gave no code."""
    cursor.execute(_COMMONEST, {"task": task_id, "files": numbers(files)})
    row = cursor.fetchone()
    return None if row is None else Cause("pilot", *row)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a task says of its ranges: see the keys of these names."""

    keeps_events: bool = False
    accepts_partial: bool = False
    only_failed_count: bool = False
    uses_jumbo: bool = False
    """It has jumbo jobs, or had them."""


def rules_of(tasks: Collection[int]) -> dict[int, Rules]:
    """The rules of these tasks. One query."""
    rows = Task.objects.filter(pk__in=sorted(tasks)).values_list("pk", "split_rule", "use_jumbo")
    parsed = [(task, SplitRule.parse(rule), bool(use)) for task, rule, use in rows]
    return {
        task: Rules(rule.flag("ND"), rule.flag("AP") or rule.flag("FP"), rule.flag("XF"), jumbo)
        for task, rule, jumbo in parsed
    }


class AtQueue(NamedTuple):
    """Whether another consumer may follow at a queue, and whether the queue may take its slots back at any time."""

    takes_more: bool = True
    preemptable: bool = False


def queues_of(names: Collection[str]) -> dict[str, AtQueue]:
    """The queues of these names that there are. One query."""
    columns = ("pk", "status", "job_seed", f"data__{NO_CHANNEL}", "pledged_cores")
    rows = Queue.objects.filter(pk__in=sorted(names)).values_list(*columns)
    return {
        name: AtQueue(status in RETRIED_AT and seed != "std" and not no_channel, cores == -1)
        for name, status, seed, no_channel, cores in rows
    }
