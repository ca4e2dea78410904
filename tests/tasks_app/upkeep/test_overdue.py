"""What is asked of jobs that are too old, however many tasks there are."""

from __future__ import annotations

import pytest
from django.db import connection

from tasks_app.upkeep.overdue import BOUND, STAYS
from tests.plans import fill_table, plan_of, scanned


@pytest.mark.django_db
def test_of_jobs_their_own_tasks_are_asked_and_not_all_that_there_ever_were() -> None:
    fill_table("jedi_tasks", 2000, jeditaskid="i", status="'running'")
    fill_table("jedi_taskparams", 2000, jeditaskid="i")
    fill_table("jobs", 2000, pandaid="i", jeditaskid="i % 20 + 1", jobstatus="'activated'")
    for asked in (BOUND, STAYS):
        jobs = f"SELECT j.pandaid, {asked} FROM jobs j WHERE j.pandaid BETWEEN 1 AND 1000 FOR UPDATE OF j"  # noqa: S608
        assert not {"jedi_tasks", "jedi_taskparams"}.intersection(scanned(plan_of(jobs)))
        with connection.cursor() as cursor:
            cursor.execute(jobs)
            assert cursor.rowcount == 1000
