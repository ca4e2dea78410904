"""Tasks that make jobs on a schedule, with a clock that is passed in."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from tasks_app.agents import feeder, periodic, refiner
from tasks_app.agents.watchdogs import archive
from tasks_app.inputs import schedules
from tasks_app.lifecycle import claims
from tasks_app.models import JobParams, PeriodicTask
from tasks_app.submission import command_queue
from tests.flow.driving import (
    agents_turn,
    dataset,
    files,
    jobs,
    parameters,
    settle,
    states,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Pilot, always, drive

pytestmark = pytest.mark.usefixtures("books")
NOW = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def scheduled(now: datetime = NOW, **changes: Any) -> int:
    """A task that makes jobs each hour, ready for its first time."""
    more = {
        key: changes.pop(key) for key in list(changes) if key not in ("cron", "jobs", "until", "most_open", "every_s")
    }
    items = more.pop("items", ())
    schedule = {"every_s": 3600, **changes} if "cron" not in changes else changes
    made = submit(parameters("lab.hc", *items, noInput=True, periodic=schedule, **{"maxAttempt": 1, **more}))
    refiner.run()
    feeder.run(now=now)
    return made


def turn(now: datetime, pilot: Pilot | None = None) -> None:
    periodic.run(now=now)
    drive(pilot or Pilot())


def row(task_id: int) -> PeriodicTask:
    return PeriodicTask.objects.get(pk=task_id)


def test_each_hour_jobs_are_made_and_the_task_runs_on_in_between() -> None:
    made = scheduled(jobs=2)
    assert (status(made), dataset(made, "pseudo_input").files) == ("ready", 0)
    for hour in range(3):
        turn(NOW + hour * HOUR)
        assert states(made) == {"finished": 2 * hour + 2}
        turn(NOW + hour * HOUR + timedelta(minutes=59))
        assert (status(made), len(jobs(made))) == ("running", 2 * hour + 2)
    found = row(made)
    assert (found.made, found.records, found.missed, found.skipped) == (3, 6, 0, 0)
    assert (found.next_due, found.last) == (NOW + 3 * HOUR, NOW + 2 * HOUR)
    assert "2 jobs are made every hour; so far 3 times." in found.sentence()


@pytest.mark.parametrize("minutes", [10, 90])
def test_jobs_are_made_as_often_as_the_schedule_says(minutes: int) -> None:
    made, step = scheduled(every_s=minutes * 60), timedelta(minutes=minutes)
    for passed, number in ((0 * step, 1), (step - timedelta(seconds=1), 1), (step, 2), (2 * step, 3)):
        turn(NOW + passed)
        assert len(jobs(made)) == number, passed
    assert row(made).next_due == NOW + 3 * step


def test_times_that_went_by_are_made_up_for_once() -> None:
    made = scheduled()
    turn(NOW)
    turn(NOW + 5 * HOUR + timedelta(minutes=10))
    found = row(made)
    assert (len(jobs(made)), found.made, found.missed) == (2, 2, 4)
    assert found.next_due == NOW + 6 * HOUR, "the grid stays"


def test_a_cron_line_waits_for_its_first_time() -> None:
    made = scheduled(cron="0 3 * * *")
    turn(NOW)
    assert not jobs(made) and row(made).next_due == datetime(2031, 5, 7, 3, tzinfo=UTC)
    turn(datetime(2031, 5, 7, 3, 0, 5, tzinfo=UTC))
    assert states(made) == {"finished": 1}
    assert row(made).next_due == datetime(2031, 5, 8, 3, tzinfo=UTC)


def test_jobs_that_count_events_never_see_the_same_twice() -> None:
    items = (template("number", "--first ${FIRSTEVENT} --events ${MAXEVENTS} --seed ${RNDMSEED}"),)
    made = scheduled(jobs=2, nEventsPerJob=10, items=items)
    for hour in range(2):
        turn(NOW + hour * HOUR)
    lines = [JobParams.objects.get(pk=job.id).params.split() for job in jobs(made)]
    assert [line[1:6:2] for line in lines] == [
        ["1", "10", "1"],
        ["11", "10", "2"],
        ["21", "10", "3"],
        ["31", "10", "4"],
    ]
    assert len({f.lfn for f in files(made, "pseudo_input")}) == 4


def test_a_schedule_that_is_over_ends_the_task() -> None:
    made = scheduled(until=(NOW + HOUR).isoformat())
    turn(NOW)
    assert status(made) == "running"
    turn(NOW + HOUR)
    assert (status(made), states(made)) == ("done", {"finished": 2})
    assert row(made).ended == NOW + HOUR


def test_a_time_is_skipped_while_too_much_is_unprocessed() -> None:
    made = scheduled(jobs=2, most_open=3)
    periodic.run(now=NOW)
    settle()
    periodic.run(now=NOW + HOUR)
    settle()
    assert (states(made), row(made).skipped) == ({"activated": 2}, 1)
    assert "since 2 are unprocessed" in (task(made).error_dialog or "")
    drive(Pilot())
    turn(NOW + 2 * HOUR)
    assert (states(made), row(made).skipped, row(made).made) == ({"finished": 4}, 1, 2)


def test_failures_are_tried_again_and_change_nothing_of_the_schedule() -> None:
    made = scheduled(maxAttempt=2)
    turn(NOW, Pilot(always("failed")))
    assert (status(made), states(made)) == ("running", {"failed": 2})
    turn(NOW + HOUR)
    assert (status(made), states(made)) == ("running", {"failed": 2, "finished": 1})


def command(task_id: int, name: str) -> None:
    command_queue.give_command(task_id, name, by="ada")
    settle()


def test_a_paused_task_makes_nothing_and_goes_on_with_one_time_when_it_is_resumed() -> None:
    made = scheduled()
    turn(NOW)
    command(made, "pause")
    turn(NOW + 3 * HOUR)
    assert (status(made), len(jobs(made))) == ("paused", 1)
    command(made, "resume")
    turn(NOW + 4 * HOUR)
    assert (status(made), len(jobs(made)), row(made).missed) == ("running", 2, 3)


@pytest.mark.parametrize(("name", "ends"), [("finish", "done"), ("kill", "aborted")])
def test_a_command_ends_the_task_and_its_schedule(name: str, ends: str) -> None:
    made = scheduled()
    turn(NOW)
    command(made, name)
    turn(NOW + HOUR)
    assert (status(made), len(jobs(made))) == (ends, 1)
    assert row(made).ended == NOW + HOUR


def test_a_task_that_is_finished_with_work_left_is_finished_not_done() -> None:
    made = scheduled(jobs=2)
    periodic.run(now=NOW)
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    pilot.end(job)
    agents_turn()
    command(made, "finish")
    assert status(made) == "finished"


def test_a_pass_that_is_killed_makes_the_time_come_again_and_not_twice(monkeypatch: Any) -> None:
    made = scheduled(jobs=3)

    def killed(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(claims, "release_task", killed)
        with pytest.raises(KeyboardInterrupt):
            periodic.run(now=NOW)
    assert (row(made).made, dataset(made, "pseudo_input").files) == (0, 0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jedi_tasks SET lockedby = NULL, lockedtime = NULL, fence = fence + 1")
    turn(NOW)
    turn(NOW)
    assert (row(made).made, states(made)) == (1, {"finished": 3})


def test_a_claim_that_is_gone_writes_nothing() -> None:
    made = scheduled()
    ((_, fence),) = claims.claim_tasks("test", ["ready"], 1, even_waiting=True)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jedi_tasks SET fence = fence + 1, lockedby = NULL, lockedtime = NULL")
    with pytest.raises(claims.LostClaimError), transaction.atomic():
        schedules.make_due(made, fence, now=NOW)
    assert row(made).made == 0


def test_jobs_of_long_ago_are_archived_though_the_task_may_never_end() -> None:
    made = scheduled()
    turn(NOW)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET modificationtime = modificationtime - interval '30 days'")
    assert archive.run().items == 1
    assert not jobs(made) and status(made) == "running"


def test_a_wrong_schedule_breaks_the_task_and_names_the_field() -> None:
    made = submit(parameters("lab.hc", noInput=True, periodic={"cron": "never"}))
    refiner.run()
    settle()
    assert status(made) == "broken"
    assert "periodic.cron" in (task(made).error_dialog or "")


def test_the_page_of_the_task_says_when_the_next_jobs_come(api: Callable[..., Client]) -> None:
    made = scheduled()
    turn(NOW)
    page = api().get(f"/tasks/{made}/").content.decode()
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "1 job is made every hour; so far 1 time." in words
    assert re.search(r"Next: 2031-05-06 08:08", words)
    assert "no job is queued: the next input is made at 2031-05-06 08:08 UTC." in words
