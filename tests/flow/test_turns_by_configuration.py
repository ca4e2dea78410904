"""What the configuration says of the job generator's turns: who takes turns, how many tasks and files, who comes in between."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid.configuring import set_value
from brokerage_app.models import WorkQueue
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.generation.groups import known_queues
from tasks_app.generation.task_turns import HAS_WORK
from tasks_app.generation.turns_by_configuration import turns_of
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import CatalogueDataset, Job
from tasks_app.outcomes.dataset_endings import _set_lifetimes
from tests.flow.driving import add_dataset, parameters, reads, submit, task, wake
from tests.flow.pilot import Pilot, drive
from tests.flow.test_watchdogs import made_task, update
from tests.statements import sent

pytestmark = pytest.mark.usefixtures("books")


def conf(component: str, key: str, value: str, vo: str = "") -> None:
    set_value(component, key, value, vo=vo, by="ada")


def waiting(user: str, **columns: Any) -> int:
    name = f"lab.{user}.{timezone.now().timestamp()}"
    params = parameters(name, noInput=True, nEvents=3, nEventsPerJob=1, userName=user)
    made = task_moves.submit(
        params, name=name, user=user, vo="lab", label="user", task_type="anal", priority=500, parent_id=None
    )
    refiner.run()
    feeder.run()
    if columns:
        update("jedi_tasks", "jeditaskid", made, **columns)
    return made


def in_turn(limit: int = 50) -> list[int]:
    """The tasks that a pass takes, in their order."""
    turns = turns_of(known_queues())
    claimed = claims.claim_tasks("t", ["ready"], limit, condition=HAS_WORK, agent="job_generator", turns=turns)
    return [task_id for task_id, _ in claimed]


def queue(name: str, **more: Any) -> WorkQueue:
    return WorkQueue.objects.create(name=name, type="user", vo="lab", status="active", **more)


def test_users_take_turns_unless_a_queue_groups_its_tasks_by_another_attribute() -> None:
    mine, other = queue("theirs"), queue("others")
    of_group = {"workinggroup": "phys", "workqueue_id": mine.id}
    ada = [waiting("ada", **of_group) for _ in range(2)]
    bob = waiting("bob", **of_group)
    eve = waiting("eve", workinggroup="soft", workqueue_id=mine.id)
    conf("jobgen", "_".join(("GROUPBYATTR", "theirs")), "workingGroup")
    # Of the first group its first task, of the second group its first, then those of the first group.
    assert in_turn() == [ada[0], eve, ada[1], bob]
    more = [waiting(user, workinggroup="phys", workqueue_id=other.id) for user in ("ada", "ada", "bob")]
    assert in_turn() == [more[0], more[2], more[1]], "in other queues users take turns"


@pytest.mark.parametrize("suffix", ["_mine", ""])
def test_a_pass_takes_so_many_tasks_of_a_queue(suffix: str) -> None:
    mine, other = queue("mine"), queue("others")
    tasks = [waiting(user, workqueue_id=mine.id) for user in ("ada", "bob", "eve")]
    others = [waiting(user, workqueue_id=other.id) for user in ("ada", "bob", "eve")]
    conf("jobgen", f"NTASKS{suffix}", "2", vo="lab")
    taken = in_turn()
    assert [made in taken for made in tasks] == [True, True, False]
    assert [made in taken for made in others] == [True, True, bool(suffix)]


def test_urgent_tasks_of_one_user_get_turns_between_those_of_others() -> None:
    urgent = [waiting("mal", currentpriority=1500) for _ in range(3)]
    others = [waiting(f"user{n}") for n in range(5)]
    assert in_turn() == [urgent[0], *others[:3], urgent[1], *others[3:], urgent[2]], "30 for each hundred"


def test_urgent_tasks_wait_like_others_where_the_ratio_is_0() -> None:
    urgent = [waiting("mal", currentpriority=1500) for _ in range(3)]
    others = [waiting(f"user{n}") for n in range(2)]
    conf("dbproxy", "SUPER_HIGH_PRIO_TASK_RATIO", "0")
    assert in_turn() == [urgent[0], *others, *urgent[1:]]


def test_a_pass_reads_so_many_files_of_a_task(settings: Any) -> None:
    settings.JEDI_QUEUE_FLOOR = 1000
    add_dataset("lab.many", 350)
    made = submit(parameters("lab.t", reads("lab.many"), nFilesPerJob=1, skipScout=True))
    refiner.run()
    feeder.run()
    conf("jobgen", "NFILES", "100", vo="lab")
    for jobs in (100, 200, 300, 350):
        wake()
        job_generator.run(jobs_a_task=1000)
        assert Job.objects.filter(task_id=made).count() == jobs


def test_a_job_of_more_files_than_a_pass_may_read_is_made_nevertheless() -> None:
    add_dataset("lab.many", 350)
    made = submit(parameters("lab.t", reads("lab.many"), nFilesPerJob=150, skipScout=True))
    conf("jobgen", "NFILES", "100")
    drive(Pilot())
    assert (task(made).status, Job.objects.filter(task_id=made).count()) == ("done", 3)


def test_the_configuration_adds_no_statement_to_a_pass() -> None:
    waiting("ada")
    with sent() as usual:
        job_generator.run()
    queue("mine")
    for key, value in (("NTASKS", "5"), ("NFILES", "500"), ("GROUPBYATTR", "workingGroup")):
        conf("jobgen", key, value)
    waiting("ada")
    with sent() as configured:
        job_generator.run()
    assert len(configured) <= len(usual)


@pytest.mark.parametrize(("type", "days"), [("output", 20), ("log", None)])
def test_outputs_of_a_type_are_kept_as_long_as_is_configured(type: str, days: int | None) -> None:
    conf("task_setup", "_".join(("DATASET_LIFETIME", type)), "20")
    made = made_task(1)
    drive(Pilot())
    now = timezone.now()
    _set_lifetimes(task(made), "done", now)
    expires = CatalogueDataset.objects.get(name="lab.t.out").expires
    assert (None if expires is None else (expires - now).days) == days
