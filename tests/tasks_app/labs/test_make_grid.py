"""A made-up grid: as large as asked, with books that balance, the same for the same seed, and never over real tasks."""

from __future__ import annotations

from io import StringIO
from random import Random

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, F
from django.utils import timezone

from brokerage_app.grid.repository import load_grid
from brokerage_app.models import JobCount, Queue, Sample, Site, VerdictRecord
from jedisite.models import AgentPass, AuditEntry
from tasks_app.audit import flow_invariants
from tasks_app.domain.states import TASK_FINAL
from tasks_app.inputs.locality import inputs_of
from tasks_app.labs.synthetic.made_up_plan import Size, plans
from tasks_app.models import (
    ErrorFingerprint,
    File,
    Job,
    JobArchive,
    JobEndDue,
    JobFailure,
    JobFile,
    JobRetryHistory,
    Task,
    TaskStatusLog,
    Worker,
)


def make(**options: int) -> str:
    out = StringIO()
    call_command("make_grid", **{"sites": 12, "tasks": 60, "jobs": 500, "files": 2000, **options}, stdout=out)
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_books_of_a_made_up_grid_balance() -> None:
    make()
    assert Task.objects.count() == 60
    assert File.objects.filter(type="input").count() == 2000
    assert JobArchive.objects.exists()
    assert 350 <= Job.objects.count() + JobArchive.objects.count() <= 650
    assert not flow_invariants.find()
    states = set(Task.objects.values_list("status", flat=True))
    assert states >= {"running", "done", "finished"} and len(states) >= 7
    assert {"finished", "failed", "running", "activated"} <= set(Job.objects.values_list("status", flat=True))
    assert JobFile.objects.filter(type="output").count() == Job.objects.count() + JobArchive.objects.count()
    grid = load_grid(timezone.now())
    assert set(grid.queues()) == set(Queue.objects.values_list("name", flat=True))
    assert grid.nuclei and Site.objects.filter(role="nucleus").count() >= len(grid.nuclei)
    assert grid.links and any(site.software for site in grid.sites.values())
    assert sum(site.running for site in grid.queues().values()) == Job.objects.filter(status="running").count()
    assert sum(JobCount.objects.values_list("jobs", flat=True)) == Job.objects.open().count()
    assert inputs_of(Task.objects.filter(status="running")[0])[0].replicas

    # It has what pages tell of: histories, attempts, errors with their books, workers, decisions, passes, changes.
    ended = Task.objects.filter(status__in=TASK_FINAL).order_by("id")[0]
    assert TaskStatusLog.objects.filter(task_id=ended.id).count() > 2
    assert JobRetryHistory.objects.filter(new_job_id__gt=F("old_job_id")).exists()
    failed = Job.objects.filter(status="failed")
    assert JobFailure.objects.count() == failed.count() + JobArchive.objects.filter(status="failed").count()
    assert not JobEndDue.objects.exists()
    assert 3 < ErrorFingerprint.objects.count() < 60
    assert Worker.objects.filter(status="running").exists()
    assert VerdictRecord.objects.exclude(code="").exists() or not Task.objects.filter(status="pending").exists()
    assert AgentPass.objects.exists() and AuditEntry.objects.filter(object_type="task").exists()
    whole = Sample.objects.filter(site="", share="").order_by("-at")[0]
    assert whole.running_jobs is not None and 0 <= whole.running_jobs <= Job.objects.open().count()
    nodes = failed.values("worker_node").annotate(jobs=Count("id"))
    assert all(node["worker_node"] for node in nodes)


def test_a_few_tasks_are_large_and_most_are_small() -> None:
    made = plans(Size(2000, 100_000, 200_000), Random(1))
    files = sorted(task.files for task in made)
    assert sum(files) == 200_000
    assert files[-1] > 20 * files[len(files) // 2]
    assert all(task.units <= task.files for task in made)
    assert [task.created_s for task in made] == sorted((task.created_s for task in made), reverse=True)


@pytest.mark.django_db
def test_it_is_not_made_where_there_are_tasks(make_task) -> None:
    make_task()
    with pytest.raises(CommandError, match="there is 1 task already"):
        make()
    assert not Queue.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [{"sites": 0}, {"tasks": -1}, {"files": 0}, {"jobs": 0}])
def test_a_grid_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="must be 1 or more"):
        make(**wrong)
