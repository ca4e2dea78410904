"""bench events, ends: a job ends that has the ranges of a file in hand, and half of them finished."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from events_app.lifecycle.range_handout import take
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.lifecycle.range_reports import RangeKey, book, lock_and_hold
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import hot_cursor
from tasks_app.labs.bench import scene
from tasks_app.labs.bench.database import settle
from tasks_app.labs.bench.measuring import Clock
from tasks_app.models import Dataset, File, Job, JobFile
from tasks_app.outcomes import outcomes
from tasks_app.outcomes.job_outcome import Outcome

OFFSET: Final = 10**9
"""Between the number of a job and that of its jobset."""


def seconds(ranges: int, kind: EventJobKind, a_call: int) -> float:
    """How long the end of a job takes that has so many ranges, with all that is booked of it. Raises RuntimeError.

    It was handed `a_call` ranges by each call, and has reported those of every second call.
    """
    job = _at_work(ranges, kind, a_call)
    settle("jedi_events")
    with Clock() as clock, transaction.atomic(), hot_cursor() as cursor:
        ended = outcomes.book(cursor, [Outcome(job.id, job.task_id, "finished")])
    if ended != 1:
        raise RuntimeError(f"job {job.id} has not ended")
    return clock.seconds


def _at_work(ranges: int, kind: EventJobKind, a_call: int) -> Job:
    task, dataset = scene.new_task()
    scene.fill(task, dataset, 1)
    (job_id,) = scene.add_jobs(1, scene.site_names(1), "running", task_id=task.id, inputs=1)
    file_id = File.objects.get(dataset_id=dataset.id).pk
    File.objects.filter(pk=file_id).update(status="running", job_id=job_id)
    Dataset.objects.filter(pk=dataset.pk).update(files_used=1)
    JobFile.objects.filter(job_id=job_id, type="input").update(dataset_id=dataset.id, file_id=file_id)
    JobFile.objects.filter(job_id=job_id).exclude(type="input").delete()
    jobset = job_id + OFFSET
    Job.objects.filter(pk=job_id).update(jobset_id=jobset, event_service=kind, secret_hash=None, max_attempt=10)
    is_jumbo = kind is EventJobKind.JUMBO
    with transaction.atomic(), hot_cursor() as cursor:
        insert_blocks(cursor, [NewBlock(task.id, dataset.id, jobset, RangeBlock(file_id, 1, ranges, 1))])
        for first in range(1, ranges + 1, a_call):
            taken = take(cursor, task.id, a_call, "pandaid = %(job)s", {"job": job_id}, jumbo=is_jumbo)
            if sum(one.block.count for one in taken.blocks) != a_call:
                raise RuntimeError(f"job {job_id} was not handed {a_call} ranges from {first} on")
        said = {
            RangeKey(job_id, file_id, n, 10): RangeReport(EventStatus.FINISHED)
            for first in range(1, ranges + 1, 2 * a_call)
            for n in range(first, first + a_call)
        }
        _, held = lock_and_hold(cursor, task.id, job_id, said, "true", {})
        if book(cursor, task.id, held, said, {job_id: job_id}) != len(said):
            raise RuntimeError(f"job {job_id} has not finished {len(said)} ranges")
    return Job.objects.get(pk=job_id)
