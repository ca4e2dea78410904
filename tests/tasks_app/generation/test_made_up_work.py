"""Tasks of a made-up grid are such that the real agents find sites for them."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from brokerage_app.grid.installed_policy import work_queues
from brokerage_app.models import WorkQueue
from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.criteria_parser import parse
from tasks_app.agents import feeder, job_generator, refiner, task_broker
from tasks_app.agents.watchdogs import pending
from tasks_app.models import Job, Task
from tests.flow.driving import wake

TURNS = (refiner, feeder, task_broker, pending, job_generator, job_generator, job_generator)
WAITING = ("registered", "defined", "assigning", "ready", "pending")


@pytest.mark.django_db(transaction=True)
def test_most_tasks_that_wait_get_jobs_from_the_real_agents_and_none_breaks() -> None:
    call_command("make_grid", sites=40, tasks=150, jobs=400, files=3000, stdout=StringIO())
    queues = list(WorkQueue.objects.all())
    assert len(queues) > 5
    for queue in queues:
        parse(queue.criteria, queue.variables)  # what cannot be read raises
    waiting = set(Task.objects.filter(status__in=WAITING).values_list("id", flat=True))
    (last,) = Job.objects.order_by("-id").values_list("id", flat=True)[:1]
    for agent in (*TURNS, *TURNS[2:]):
        wake()
        agent.run()
    given = set(Job.objects.filter(id__gt=last).values_list("task_id", flat=True))
    assert len(waiting) >= 8
    assert len(waiting & given) >= len(waiting) * 3 / 4
    broken = Task.objects.filter(status__in=("broken", "tobroken"), id__in=waiting)
    assert list(broken.values_list("id", "error_dialog")) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("label", ["user", "test", "managed"])
def test_tasks_of_the_sites_own_users_have_a_work_queue_beside_those_of_the_made_up_grid(label: str) -> None:
    call_command("make_grid", sites=12, tasks=3, jobs=10, files=30, stdout=StringIO())
    found = work_queues().choose(TaskAttributes(vo="local", prod_source_label=label))
    assert found.queue is not None, found
