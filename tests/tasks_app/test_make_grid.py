"""A made-up grid: as large as asked, with books that balance, the same for the same seed, and never over real tasks."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from brokerage_app.models import JobCount, Queue, Site
from brokerage_app.repository import load_grid
from tasks_app import audit_sql
from tasks_app.locality import inputs_of
from tasks_app.models import File, Job, JobFile, Task


def make(**options: int) -> str:
    out = StringIO()
    call_command("make_grid", **{"sites": 12, "tasks": 40, "jobs": 200, "files": 1200, **options}, stdout=out)
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_books_of_a_made_up_grid_balance() -> None:
    make()
    assert Task.objects.count() == 40
    assert File.objects.count() == 1200
    assert 150 <= Job.objects.count() <= 250
    assert not audit_sql.find()
    states = set(Task.objects.values_list("status", flat=True))
    assert states == {"running", "ready", "pending", "assigning", "exhausted", "done", "finished"}
    assert {"finished", "failed", "running", "activated"} <= set(Job.objects.values_list("status", flat=True))
    assert JobFile.objects.count() == sum(
        d.files_used for t in Task.objects.all() for d in t.datasets.filter(type="input")
    )
    grid = load_grid(timezone.now())
    assert set(grid.queues()) == set(Queue.objects.values_list("name", flat=True))
    assert grid.nuclei and Site.objects.filter(role="nucleus").count() >= len(grid.nuclei)
    assert grid.links and any(site.software for site in grid.sites.values())
    assert sum(site.running for site in grid.queues().values()) == Job.objects.filter(status="running").count()
    assert sum(JobCount.objects.values_list("jobs", flat=True)) == Job.objects.open().count()
    assert inputs_of(Task.objects.filter(status="ready")[0])[0].replicas


@pytest.mark.django_db
def test_it_is_not_made_where_there_are_tasks(make_task) -> None:
    make_task()
    with pytest.raises(CommandError, match="there are 1 tasks already"):
        make()
    assert not Queue.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [{"sites": 0}, {"tasks": -1}, {"files": 0}, {"jobs": 0}])
def test_a_grid_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="must be 1 or more"):
        make(**wrong)
