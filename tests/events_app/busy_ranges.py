"""A task of event service as a busy installation has it: files at all stages, consumers, a merge job, zip files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from events_app.models import Event
from events_app.rules.event_states import EventStatus
from tasks_app.models import Dataset, File, Job, JobFile, Task

S = EventStatus


class Busy(NamedTuple):
    """The task, its files, its jobset, a consumer at work, one that has been idle for hours, and a merge job."""

    task: Task
    files: list[File]
    jobset: int
    consumer: Job
    idle: Job
    merge: Job


def block(task: Task, file: File, owner: int, first: int, ranges: int, status: EventStatus, **more: Any) -> Event:
    """A block of ranges of ten events."""
    values = {"dataset_id": file.dataset_id, "events_per_range": 10, "attempt": 3, "processed_up_to": 0, **more}
    return Event(
        task_id=task.id,
        file_id=file.id,
        job_id=owner,
        process_id=first,
        min_event=first,
        max_event=first + ranges * 10 - 1,
        status=status,
        **values,
    )


def fill(make_task: Callable[..., Task], make_job: Callable[..., Job], **changes: Any) -> Busy:
    """Files: one merged, one done, one at work, one with failures, one without attempts, one without ranges."""
    task = make_task(**{"event_service": 1, "status": "running", "user": "ada", **changes})
    dataset = Dataset.objects.create(
        task_id=task.id, name="data18.evnt.simulated", type="input", status="ready", files=6, files_to_be_used=6
    )
    files = [
        File.objects.create(
            task_id=task.id,
            dataset_id=dataset.id,
            lfn=f"EVNT.{task.id}._{number:06}.pool.root.1",
            type="input",
            status="running" if number in (2, 3, 4) else "finished" if number == 0 else "ready",
            events=1000,
        )
        for number in range(6)
    ]
    now = timezone.now()
    jobset = 5_000_000_000 + task.id
    common = {"task_id": task.id, "jobset_id": jobset, "event_service": 1, "site": "SITE_A"}
    consumer = make_job(**common, status="running", start_time=now - timedelta(hours=2), heartbeat_at=now)
    idle = make_job(**common, status="running", start_time=now - timedelta(hours=9), heartbeat_at=now)
    merge = make_job(**{**common, "event_service": 2}, status="activated")
    File.objects.filter(pk__in=[file.id for file in files[2:5]]).update(job_id=consumer.id)
    zip_file = JobFile.objects.create(
        job_id=consumer.id, type="zipoutput", lfn="zip.1.zip", status="ready", size=123_456_789, scope="transient"
    )
    JobFile.objects.create(job_id=merge.id, type="zipinput", lfn="zip.1.zip", status="ready", scope="transient")
    me, of = consumer.id, {"event_offset": jobset}
    Event.objects.bulk_create(
        [
            block(task, files[0], me, 1, 100, S.MERGED, **of),
            block(task, files[1], me, 1, 90, S.DONE, zip_row_id=zip_file.id, **of),
            block(task, files[1], me, 901, 10, S.FINISHED, **of),
            block(task, files[2], me, 1, 30, S.FINISHED, **of),
            block(task, files[2], idle.id, 301, 20, S.SENT, **of),
            block(task, files[2], jobset, 501, 50, S.READY, **of),
            block(task, files[3], me, 1, 60, S.DONE, **of),
            block(
                task,
                files[3],
                me,
                601,
                5,
                S.FAILED,
                processed_up_to=None,
                error_code=1305,
                error_diag="<script>the payload stopped at the first event</script>",
                **of,
            ),
            block(task, files[3], jobset, 601, 5, S.READY, attempt=2, **of),
            block(task, files[3], me, 651, 5, S.FAILED, error_code=1099, **of),
            block(task, files[3], me, 701, 30, S.SENT, **of),
            block(task, files[4], jobset, 1, 12, S.READY, attempt=0, **of),
            block(task, files[4], me, 121, 40, S.DISCARDED, **of),
            block(task, files[4], jobset, 121, 88, S.READY, **of),
        ]
    )
    return Busy(task, files, jobset, consumer, idle, merge)
