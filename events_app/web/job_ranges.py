"""The part of a job's page on its ranges, its jobset with the merge job, and the zip files of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils import timezone

from events_app.lists.range_columns import as_seen
from events_app.reading import consumer_counts, range_counts
from events_app.rules.event_jobs import EventJobKind
from events_app.rules.range_standing import word_of
from events_app.web.range_listing import listed
from tasks_app.models import File
from tasks_app.models.job import JobColumns

BLOCKS: Final = 20


def of_job(job: JobColumns) -> Mapping[str, Any] | None:
    """What the page shows of a job of event service; None of another. Five statements of bounded length."""
    if not job.event_service or job.task_id is None:
        return None
    now = timezone.now()
    jobset = consumer_counts.of_jobset(job.task_id, job.jobset_id) if job.jobset_id is not None else []
    is_jumbo = job.event_service == EventJobKind.JUMBO
    counted, passed = range_counts.of_job(job.task_id, job.id, is_jumbo=is_jumbo)
    others = [one for one in jobset[: consumer_counts.MOST] if one.job_id != job.id]
    zips = consumer_counts.zips([job.id, *(one.job_id for one in others)])
    rows = as_seen().filter(task_id=job.task_id, job_id=job.id)
    # Only of jumbo jobs do ranges pass to another job.
    which: dict[str, int | str] = {"job": job.id, **({"jumbo": "false"} if passed else {})}
    if passed:
        rows = rows.filter(is_jumbo=None)
    # An index has the blocks of a job by state; in the order of files, too, all of them would be sorted.
    blocks = sorted(
        rows.order_by("status")[: BLOCKS + 1], key=lambda one: (one.status, one.file_id, one.min_event or 0)
    )
    names = dict(File.objects.filter(pk__in={one.file_id for one in blocks}).values_list("id", "lfn"))
    return {
        "is_jumbo": is_jumbo,
        "passed": passed,
        "called": consumer_counts.called(job.event_service),
        "task_id": job.task_id,
        "job_id": job.id,
        "jobset_id": job.jobset_id,
        "counts": counted.counts,
        "numbers": listed(counted.counts, job.task_id, **which),
        "is_capped": counted.is_capped,
        "strip": counted.counts.pieces(),
        "blocks": [
            (block, names.get(block.file_id) or block.file_id, word_of(block.status, block.attempt))
            for block in blocks[:BLOCKS]
        ],
        "more_blocks": len(blocks) > BLOCKS,
        "consumers": [(one, one.rate(now)) for one in jobset[: consumer_counts.MOST]],
        "more_consumers": len(jobset) > consumer_counts.MOST,
        "merge_jobs": [one for one in others if one.is_merge],
        "zips": zips[: consumer_counts.MOST],
        "more_zips": len(zips) > consumer_counts.MOST,
        "most": consumer_counts.MOST,
        "now": now,
    }
