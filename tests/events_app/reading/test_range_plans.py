"""What PostgreSQL does for the counts of ranges: each statement finds its rows by an index."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from events_app.reading import consumer_counts, range_counts, range_stalls
from tasks_app.models import Task
from tests.plans import fill_table, plan_of, scanned

pytestmark = pytest.mark.django_db
FIRST = 20_000_000


def test_counts_of_ranges_read_no_table_from_beginning_to_end(make_task: Any) -> None:
    task: Task = make_task(event_service=1)
    owner, file = "1 + i / 100", "1 + i / 50"
    blocks = {"jeditaskid": f"{FIRST} + i % 64", "pandaid": owner, "fileid": file, "job_processid": "i"}
    ends = {"def_min_eventid": "i", "def_max_eventid": "i", "attemptnr": "i % 3", "status": "(i % 10)::smallint"}
    fill_table("jedi_events", 40_000, **blocks, **ends)
    jobs = {"jeditaskid": f"{FIRST} + i % 50", "jobstatus": "(ARRAY['running', 'finished', 'merging'])[1 + i % 3]"}
    fill_table(
        "jobs", 10_000, **jobs, pandaid="i", eventservice="1", jobsetid="i / 10", starttime="now() - interval '9 h'"
    )
    with CaptureQueriesContext(
        connection,
    ) as asked:
        range_counts.of_task(task.id, 1000)
        range_counts.of_tasks([task.id], 1000)
        range_counts.of_job(task.id, 7, is_jumbo=False)
        range_counts.of_files(task.id, [3, 4, 5])
        consumer_counts.at_work(task.id)
        consumer_counts.of_jobset(task.id, 7)
        consumer_counts.idle(timezone.now())
        list(range_stalls.without_progress(timezone.now()))
        range_stalls.gate(task, timezone.now())
    statements = [one["sql"] for one in asked.captured_queries if re.search("jedi_events|JOIN jobs", one["sql"])]
    assert len(statements) >= 8
    for sql in statements:
        large = [table for table in scanned(plan_of(sql.replace("%", "%%"))) if re.match("jedi_events|jobs", table)]
        limited = "LIMIT 1000) e" in sql  # a limit that any plan reaches soon
        assert limited or not large, (large, sql)
