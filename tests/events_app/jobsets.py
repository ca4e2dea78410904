"""A jobset as it is stored: a task with one input file, its consumers, and the records of their outputs and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from events_app.consumers.copying import CopyKind, JobCopy, copy_jobs
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import hot_cursor, take_ids
from tasks_app.audit import flow_invariants
from tasks_app.models import Dataset, File, Job, JobFile, JobParams, JobRetryHistory, JobStatusLog, Task
from tasks_app.outcomes.final_reports import book_reports
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.job_outputs import Output
from tasks_app.outcomes.outcomes import book
from tests.events_app.ranges import JOBSET, firsts, given, say

USED = {"files": 1, "files_to_be_used": 1, "files_used": 1}


@dataclass(frozen=True)
class Jobset:
    """A task with a jobset of one file. `first` is its first consumer, which has the file and the outputs."""

    task: Task
    inputs: Dataset
    outputs: Dataset
    logs: Dataset
    file: File
    first: int

    def another(self, **changes: Any) -> int:
        """A further consumer, at a pilot unless it is said otherwise."""
        with transaction.atomic(), hot_cursor() as cursor:
            copied = copy_jobs(cursor, [JobCopy(self.first, CopyKind.CONSUMER)], by="test")
            count_logs(copied.logs)
        (job,) = copied.jobs
        at_work = {"status": "running", "fence": 1, "heartbeat_at": timezone.now(), "start_time": timezone.now()}
        Job.objects.filter(pk=job).update(**{**at_work, **changes})
        JobStatusLog.objects.filter(job_id=job).update(status=Job.objects.get(pk=job).status)
        return job

    def owner(self) -> int | None:
        self.file.refresh_from_db()
        return self.file.job_id


def count_logs(logs: Any) -> None:
    for dataset, count in logs.items():
        row = Dataset.objects.get(pk=dataset)
        row.files, row.files_to_be_used, row.files_used = (
            row.files + count,
            row.files_to_be_used + count,
            row.files_used + count,
        )
        row.save()


def make_jobset(
    make_task: Callable[..., Task],
    make_dataset: Callable[..., Dataset],
    *,
    rules: str = "",
    events: int = 25,
    jobset: int = JOBSET,
    **changes: Any,
) -> Jobset:
    task = make_task(event_service=1, split_rule=rules)
    inputs = make_dataset(task, name="lab.in", events=events, **USED)
    outputs = make_dataset(task, name="user.ada.out", type="output", status="running", **USED)
    logs = make_dataset(task, name="user.ada.log", type="log", status="running", **USED)
    with hot_cursor() as cursor:
        (job,) = take_ids(cursor, "jobs_pandaid_seq", 1)
    now = timezone.now()
    at_work = {"status": "running", "fence": 1, "heartbeat_at": now, "start_time": now}
    Job.objects.create(
        id=job,
        **{
            "task_id": task.id,
            "jobset_id": jobset,
            "event_service": 1,
            "name": f"user.ada.test.{job}",
            "user": "ada",
            "site": "SITE_A",
            "attempt": 1,
            "max_attempt": 4,
            "core_count": 8,
            "min_ram_mb": 8000,
            "current_priority": 900,
            "assigned_priority": 900,
            "transformation": "http://site/trf/user/simulate",
            "special_handling": "eventservice",
            **at_work,
            **changes,
        },
    )
    JobStatusLog.objects.create(job_id=job, status=Job.objects.get(pk=job).status, by="test")
    JobParams.objects.create(id=job, params="--in events.root --out out.000001.root")
    of_task = {"task_id": task.id, "keep_track": 1}
    file = File.objects.create(
        dataset_id=inputs.id,
        lfn="events.root",
        type="input",
        status="running",
        scope="lab",
        size=100,
        events=events,
        max_attempt=3,
        max_failure=3,
        job_id=job,
        **of_task,
    )
    made = {"status": "defined", "scope": "user.ada", "job_id": job, "out_job_id": job}
    out = File.objects.create(dataset_id=outputs.id, lfn="out.000001.root", type="output", **made, **of_task)
    log = File.objects.create(dataset_id=logs.id, lfn="out.000001.log.tgz", type="log", **made, **of_task)
    for row, dataset in ((file, inputs), (out, outputs), (log, logs)):
        JobFile.objects.create(
            job_id=job,
            task_id=task.id,
            dataset_id=dataset.id,
            file_id=row.id,
            type=row.type,
            lfn=row.lfn,
            scope=row.scope,
            dataset=dataset.name,
            destination_block=None if row is file else dataset.name,
            destination_se=None if row is file else "local",
            size=row.size,
            status="ready" if row is file else "defined",
        )
    return Jobset(task, inputs, outputs, logs, file, job)


def works(job: int, wanted: int, said: Mapping[int, RangeReport]) -> list[int]:
    """A job takes ranges and reports on those with these first events. Returns the first events of all that it took."""
    taken = given(job, wanted)
    if said:
        of_blocks = {r.first: block for one in taken.blocks for block in [one.block] for r in block.ranges()}
        say(job, {(of_blocks[first].file_id, first, of_blocks[first].attempts): what for first, what in said.items()})
    return [first for _, first in firsts(taken)]


def end(*outcomes: Outcome) -> int:
    """Jobs end, in one transaction. Returns how many have ended by that."""
    with transaction.atomic(), hot_cursor() as cursor:
        return book(cursor, outcomes)


def ends(job: int, status: str = "finished", **more: Any) -> tuple[str, str | None, int | None]:
    """A job ends; its state, sub-status and code of the task buffer then."""
    end(Outcome(job, Job.objects.get(pk=job).task_id, status, **more))
    return said_of(job)


def said_of(job: int) -> tuple[str, str | None, int | None]:
    row = Job.objects.get(pk=job)
    return row.status, row.sub_status, row.task_buffer_error_code


def follower(job: int) -> int:
    """The job that was made after this one."""
    return JobRetryHistory.objects.get(old_job_id=job).new_job_id


def broken_invariants(*names: str) -> list[str]:
    """Those of the audit that do not hold, of these names or of any."""
    asked = [invariant for invariant in flow_invariants.INVARIANTS if not names or invariant.name in names]
    with connection.cursor() as cursor:
        found = [flow_invariants.check(cursor, invariant) for invariant in asked]
    return [str(violation) for violation in found if violation is not None]


def books_lines() -> None:
    """The adder books what waits for it."""
    while book_reports():
        pass


def stores(job: int) -> tuple[tuple[Output, dict[str, Any]], ...]:
    """What a pilot reports of all outputs of a job."""
    rows = JobFile.objects.filter(job_id=job, type__in=("output", "log"))
    return tuple(
        (
            Output(job, row.file_id, row.type, row.lfn, row.scope, row.dataset, row.destination_se),
            {"fsize": 9, "adler32": "1f", "surl": f"file:/{row.lfn}", "nevents": 25},
        )
        for row in rows
    )


def merged(job: int, status: str = "finished") -> tuple[str, str | None, int | None]:
    """A pilot has had the merge job; it stores its output, or fails."""
    now = timezone.now()
    Job.objects.filter(pk=job).update(status="holding", fence=1, heartbeat_at=now, start_time=now)
    return ends(job, status, stored=stores(job) if status == "finished" else ())


NOT_OF_THESE = ("task_state_is_logged", "job_state_is_logged", "report_of_holding_job")
"""Invariants of logs and pilots, which these tests do without."""


def check(*names: str) -> None:
    """The books balance, in what these invariants say, or all."""
    broken = [one for one in broken_invariants(*names) if not one.startswith(NOT_OF_THESE)]
    assert not broken, broken
