"""One user's work does not keep the others out of a queue: its places are divided among those who want them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.counts import statistics
from tasks_app.explaining import deciding_again
from tasks_app.lifecycle import task_moves
from tasks_app.models import Job
from tests.flow.driving import SITE, add_queue, parameters, task, wake
from tests.flow.pilot import Pilot, drive

pytestmark = pytest.mark.usefixtures("books")


@pytest.fixture(autouse=True)
def _few_places(settings: Any) -> None:
    settings.JEDI_QUEUE_FLOOR = 20


def work_of(user: str, name: str, jobs: int, **more: Any) -> int:
    params = parameters(name, noInput=True, nEvents=jobs, nEventsPerJob=1, userName=user, **more)
    made = task_moves.submit(
        params, name=name, user=user, vo="lab", label="user", task_type="anal", priority=500, parent_id=None
    )
    refiner.run()
    feeder.run()
    return made


def queued() -> Counter[str]:
    return Counter(Job.objects.filter(status="activated").values_list("user", flat=True))


def one_starts(pilot: Pilot) -> None:
    """A pilot takes a job and ends it, and the generator fills the place."""
    (job,) = pilot.fetch()
    pilot.start(job)
    pilot.end(job)
    wake()
    job_generator.run()


def test_who_is_alone_has_all_places() -> None:
    work_of("mal", "lab.large", 100)
    job_generator.run()
    assert queued() == {"mal": 20}


def test_places_that_come_free_go_to_users_who_have_fewer_until_each_has_a_part() -> None:
    large = work_of("mal", "lab.large", 100)
    job_generator.run()
    mine = [work_of("ada", f"lab.small{n}", 8) for n in range(3)]
    pilot = Pilot()
    for number in range(1, 10):
        one_starts(pilot)
        assert queued().total() == 20
        assert Job.objects.filter(user="ada").count() == number
    codes = [code for row in VerdictRecord.objects.filter(task_id=large) for _, code, *_ in row.skipped]
    assert "user_queue_long" in codes
    drive(Pilot())
    assert {task(made).status for made in mine} == {"done"}


def test_many_tasks_of_one_user_leave_a_place_for_the_first_of_another() -> None:
    for number in range(25):
        work_of("mal", f"lab.many{number}", 20)
    last = work_of("ada", "lab.last", 3)
    job_generator.run(tasks=4)
    assert queued() == {"mal": 10, "ada": 3}
    # Now nobody else wants places.
    wake()
    job_generator.run(tasks=4)
    assert queued() == {"mal": 17, "ada": 3}
    assert task(last).status == "running"


def test_a_user_whose_work_is_bound_elsewhere_keeps_nobody_from_a_few_places() -> None:
    add_queue("SITE_B", status="offline")
    work_of("mal", "lab.large", 100)
    for number in range(9):
        work_of(f"user{number}", f"lab.bound{number}", 5, site="SITE_B")
    job_generator.run()
    assert Counter(Job.objects.filter(site=SITE).values_list("user", flat=True))["mal"] >= 5


def test_who_has_the_own_part_is_told_what_the_generator_decided() -> None:
    large, mine = work_of("mal", "lab.large", 100), work_of("mal", "lab.more", 100)
    work_of("ada", "lab.small", 3)
    job_generator.run()
    assert queued() == {"mal": 10, "ada": 3}
    kept = {made: deciding_again.kept_of_task(made) for made in (large, mine)}
    assert {made: record.code for made, record in kept.items()} == {large: "", mine: "user_queue_long"}
    for record in kept.values():
        assert deciding_again.again(record, []).before.code == record.code
    statistics.refresh()
    helps = deciding_again.helping(kept[mine], timezone.now())
    assert helps is not None and [one.sentence for one in helps.remedies] == [
        f"Wait until jobs that are queued at {SITE} have started; then {SITE} takes its jobs."
    ]
    drive(Pilot())
    assert {task(made).status for made in kept} == {"done"}
