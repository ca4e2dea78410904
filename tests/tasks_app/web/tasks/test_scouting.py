"""What scouts measured, in words of the page of a task."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tasks_app.models import ScoutReport, Task

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("measured", "unit", "said"),
    [
        (0, "mHS06sPerEvent", "too little to measure"),
        (0, "HS06sPerEvent", "too little to measure"),
        (6, "mHS06sPerEvent", "0.006 HS06 s an event"),
        (6000, "mHS06sPerEvent", "6 HS06 s an event"),
        (12, "HS06sPerEventFixed", "12 HS06 s an event"),
    ],
)
def test_cpu_time_is_told_in_units_that_people_read(
    reader: Client, make_task: Callable[..., Task], measured: int, unit: str, said: str
) -> None:
    task = make_task()
    ScoutReport.objects.create(
        task_id=task.id,
        scouts=True,
        outcome="passed",
        sample=1,
        finished_jobs=1,
        detail="",
        presets={"cpu_time": 500, "cpu_time_unit": "mHS06sPerEvent"},
        measured={"cpu_time": measured, "cpu_time_unit": unit},
    )
    page = reader.get(f"/tasks/{task.id}/")
    (row,) = page.context["scouting"].rows
    assert (row.declared, row.measured) == ("0.5 HS06 s an event", said)
    assert said in page.content.decode() and "mHS06" not in page.content.decode()
