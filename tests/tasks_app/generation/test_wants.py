"""What the jobs of a task want of a site."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.cases.case import time_of
from brokerage_app.formulas.walltime import too_long, too_short
from tasks_app.generation.turn_facts import numbers_of
from tasks_app.generation.wants import needs_of, of_work
from tasks_app.models import File, Task
from tasks_app.models.task import SCOUTS_SKIPPED
from tasks_app.params.splitrule import SplitRule


@pytest.mark.parametrize(
    "unit, walltime_s, walltime_s_per_mb",
    [(None, 7200, 0.0), (SCOUTS_SKIPPED, 7200, 0.0), ("kSI2kseconds", 0, 7200.0)],
)
def test_a_walltime_is_for_each_mb_where_it_has_a_unit_and_skipped_scouts_are_none(
    unit: str | None, walltime_s: int, walltime_s_per_mb: float
) -> None:
    """Else jobs of a task whose scouts were skipped would want hours for each MB, and no queue would take them."""
    task = Task(id=1, walltime=7200, walltime_unit=unit)
    needs = needs_of(task, {})
    assert (needs.walltime_s, needs.walltime_s_per_mb) == (walltime_s, walltime_s_per_mb)
    assert numbers_of(task).walltime_s_per_mb == walltime_s_per_mb


@pytest.mark.django_db
@pytest.mark.parametrize(("granularity", "least"), [(10, 100.0), (500, 400.0), (None, 0.0)])
def test_jobs_that_take_as_many_events_as_fit_need_no_more_than_the_smallest_range(
    granularity: int | None, least: float, make_task: Any, make_dataset: Any
) -> None:
    """A queue with a shortest time, and a longest one that is too short for a whole file, gets jobs of a part of it."""
    rule = f"DY={granularity}" if granularity else ""
    task = make_task(split_rule=rule, cpu_time=10, cpu_time_unit="HS06sPerEvent", base_walltime=0)
    dataset = make_dataset(task, files=1, files_to_be_used=1)
    File.objects.create(
        task_id=task.id, dataset_id=dataset.id, lfn="f", type="input", status="ready", events=40, size=1
    )
    needs = of_work(needs_of(task, {}), task, SplitRule.parse(rule), [dataset], timezone.now(), scouting=False)
    assert (needs.cpu_hs06s, needs.least_cpu_hs06s) == (400.0, least)
    time = time_of(needs)
    fits = too_long(time, 20, cores=1, core_power=10, min_s=5) is None
    assert fits == (granularity == 10) and too_short(time, 30, cores=1, core_power=10) is None


def test_the_size_that_jobs_are_to_have_is_asked_of_queues() -> None:
    assert needs_of(Task(id=1, split_rule="NG=10"), {}).job_size_mb == 10 * 1024
    assert needs_of(Task(id=1), {}).job_size_mb == 0
