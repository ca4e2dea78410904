"""Random walks: whatever consumers of a jobset do, and in whatever order they end, the books balance after each step."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from django.db import transaction
from django.utils import timezone

from events_app.lifecycle.unneeded_consumers import end_unneeded
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import JOB_FINAL
from tasks_app.models import Job, JobStatusLog
from tests.events_app.jobsets import Jobset, books_lines, check, ends, merged
from tests.events_app.ranges import FINISHED, JOBSET, TASK, given, say
from tests.thorough import cases

pytestmark = pytest.mark.django_db
OF_RANGES = (
    "handed_out_range_has_job",
    "range_lives_once",
    "jobset_has_owner",
    "merging_consumer_is_awaited",
    "partial_file_lacks_events",
    "input_events",
    "events_of_consumers",
    "one_merge_of_jobset",
    "running_file_has_job",
    "file_in_one_open_job",
    "input_counters",
    "outputs_of_ended_jobs",
    "on_hold_counters",
)
"""What is asked after each step; all else at the end."""
REPORTS = (FINISHED, FINISHED, RangeReport(EventStatus.FAILED), RangeReport(EventStatus.FAILED, attempts=1))
ENDS = {
    "finished": {},
    "failed": {},
    "lost": {"component": "jobdispatcher", "code": 100, "diag": "no heartbeat"},
    "killed": {"component": "taskbuffer", "code": 100, "diag": "killed by ada"},
}


def step(jobset: Jobset, random: Random) -> bool:
    """One thing happens to one job. False when all jobs have ended."""
    open_jobs = list(Job.objects.exclude(status__in=JOB_FINAL).exclude(status="merging").order_by("id"))
    if not open_jobs:
        return False
    job = random.choice(open_jobs)
    if job.status == "activated" and random.random() < 0.8:
        Job.objects.filter(pk=job.id).update(
            status="running", fence=1, heartbeat_at=timezone.now(), start_time=timezone.now()
        )
        JobStatusLog.objects.filter(job_id=job.id).update(status="running")
        return True
    if job.event_service == 2:
        merged(job.id, random.choice(["finished", "finished", "failed"]))
        return True
    what = random.choices(["take", "report", "end", "unneeded", "lines"], [4, 5, 2, 1, 2])[0]
    if what == "take":
        given(job.id, random.randint(1, 4))
    elif what == "report":
        mine = Event.objects.filter(job_id=job.id, status=EventStatus.SENT)
        said = {(e.file_id, e.min_event, e.attempt): random.choice(REPORTS) for e in mine if e.min_event is not None}
        if said:
            say(job.id, {(file, first, attempts or 0): what for (file, first, attempts), what in said.items()})
    elif what == "end":
        how = random.choices(list(ENDS), [5, 3, 2, 1])[0]
        status = {"lost": "failed", "killed": "cancelled"}.get(how, how)
        ends(job.id, status, **ENDS[how])
    elif what == "unneeded":
        with transaction.atomic(), hot_cursor() as cursor:
            end_unneeded(cursor, TASK, JOBSET, job.id)
    else:
        books_lines()
    return True


@pytest.mark.parametrize("seed", range(cases(4, full=200)))
@pytest.mark.parametrize("rules", ["", "ND=1", "AP=1,XF=1"])
def test_books_balance_whatever_happens(jobset_of: Callable[..., Jobset], rules: str, seed: int) -> None:
    random = Random(f"{rules} {seed}")
    jobset = jobset_of(random.choice([25, 60]), attempts=random.randint(1, 3), rules=rules)
    for _ in range(random.randint(0, 2)):
        jobset.another()
    for _ in range(60):
        if not step(jobset, random):
            break
        check(*OF_RANGES)
    books_lines()
    check()
    if not Job.objects.exclude(status__in=JOB_FINAL).exists():
        jobset.file.refresh_from_db()
        merged_it = Job.objects.filter(event_service=2, status="finished").exists()
        gave_up = Event.objects.filter(status=EventStatus.FATAL).exists()
        assert jobset.file.status == ("partial" if merged_it and gave_up else "finished" if merged_it else "ready")
