"""What the jobs of a task want of a site."""

from __future__ import annotations

import pytest

from tasks_app.generation.turn_facts import numbers_of
from tasks_app.generation.wants import needs_of
from tasks_app.models import Task
from tasks_app.models.task import SCOUTS_SKIPPED


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
