"""Tasks that wait for a site are tried again soon after something has changed for which they may wait."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from brokerage_app.grid import configured, queue_status
from brokerage_app.models import (
    GdpConfig,
    GlobalShare,
    GridVersion,
    LinkValue,
    Queue,
    QueueEndpoint,
    Site,
    SoftwareTags,
    StorageEndpoint,
    VerdictRecord,
)
from jedisite.database.sql import the_time
from jedisite.models import Agent
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending, site_statistics
from tasks_app.counts import statistics
from tasks_app.generation import prepro
from tasks_app.generation.grid_view import GridView
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.models import Task, TaskStatusLog
from tests.flow.driving import SITE, add_dataset, add_queue, jobs, parameters, reads, status, submit, task
from tests.flow.test_preprocessing import two_steps
from tests.flow.threads import together
from tests.locks import another

pytestmark = pytest.mark.usefixtures("books")
LONG_AGO = timedelta(minutes=10)


@pytest.fixture(autouse=True)
def _fresh_configuration() -> Iterator[None]:
    configured.forget()
    yield
    configured.forget()


@pytest.fixture(autouse=True)
def _waits_by_cause(settings: Any) -> None:
    """Where nothing changes a task rests for 20 minutes."""
    settings.JEDI_PENDING_RETRY_S = 0


def waiting(name: str = "lab.t", user: str = "ada") -> int:
    """A task that no site takes: its queue is offline."""
    closed_long_ago()
    return unplaced(name, user)


def closed_long_ago() -> None:
    Queue.objects.update(status="offline")
    GridVersion.objects.update(at=F("at") - LONG_AGO)


def unplaced(name: str = "lab.t", user: str = "ada") -> int:
    made = submitted(name, user)
    job_generator.run()
    assert status(made) == "pending"
    return made


def submitted(name: str = "lab.t", user: str = "ada") -> int:
    add_dataset(f"{name}.in", 1)
    params = parameters(name, reads(f"{name}.in"), nFilesPerJob=1)
    made = task_moves.submit(
        params, name=name, user=user, vo="lab", label="user", task_type="anal", priority=500, parent_id=None
    )
    refiner.run()
    feeder.run()
    return made


def later(by: timedelta) -> None:
    """So much time has passed since everything that was."""
    Task.objects.update(state_change_time=F("state_change_time") - by, next_check=F("next_check") - by)
    GridVersion.objects.update(at=F("at") - by)


def seen_long_ago(name: str = "lab.t", user: str = "ada") -> int:
    made = waiting(name, user)
    later(LONG_AGO)
    assert pending.run().items == 0, "nothing has changed"
    return made


def open_queue() -> None:
    Queue.objects.filter(pk=SITE).update(status="online")


def by_hand() -> None:
    queue_status.set_status(SITE, "online", by="ada", reason="mended", now=timezone.now())


def another_queue() -> None:
    add_queue("NEW")


def storage() -> None:
    StorageEndpoint.objects.create(name="DISK", site_name=SITE, space_free_gb=1)


def storage_of_queue() -> None:
    QueueEndpoint.objects.create(queue_id=SITE, endpoint_id="DISK", order_read=1)


def software() -> None:
    SoftwareTags.objects.create(queue=SITE, data=[])


def another_site() -> None:
    Site.objects.create(name="NEW")


def cap() -> None:
    GdpConfig.objects.create(
        app="pandaserver", component="prio_mgr", key="CAP_RUNNING_USER_JOBS", value="9", type="int"
    )


def share() -> None:
    GlobalShare.objects.create(name="User Analysis", value=10)


def pilots() -> None:
    GridVersion.objects.update_or_create(
        part=GridVersion.PILOTS, defaults={"token": uuid.uuid4(), "at": timezone.now()}
    )


def test_each_part_that_changes_has_a_waiting_task_tried_again() -> None:
    made = seen_long_ago()
    for change in (storage, storage_of_queue, software, another_site, cap, share, pilots, another_queue, by_hand):
        change()
        assert pending.run().items == 1 and status(made) == "ready", change
        if change is not by_hand:
            Queue.objects.update(status="offline")
        later(site_waits.UNSEEN)
        job_generator.run()
        later(LONG_AGO)
    assert status(made) == "running" and [job.site for job in jobs(made)] == [SITE]


def test_what_changes_all_the_time_wakes_nobody() -> None:
    made = seen_long_ago()
    LinkValue.objects.create(source="A", destination="B", key="k", value=1, at=timezone.now())
    site_statistics.run()
    statistics.refresh_activity(timezone.now())
    assert GridVersion.objects.get(part=GridVersion.ACTIVITY).at > timezone.now() - LONG_AGO
    assert pending.run().items == 0 and status(made) == "pending"


def after_look(made: int, seconds: float) -> datetime:
    looked = task(made).state_change_time
    assert looked
    return looked + timedelta(seconds=seconds)


def test_a_task_is_tried_again_ten_seconds_after_its_look_at_the_earliest() -> None:
    made = waiting()
    open_queue()
    assert pending.run(now=after_look(made, 9.9)).items == 0
    assert pending.run(now=after_look(made, 10)).items == 1 and status(made) == "ready"


def test_the_least_wait_is_that_of_the_time_outs_and_a_shorter_usual_one_remains(settings: Any) -> None:
    settings.JEDI_LIMITS = {"task.pending_changed": 300}
    settings.JEDI_PENDING_RETRY_S = 1000
    made = waiting()
    open_queue()
    assert pending.run(now=after_look(made, 299)).items == 0
    assert pending.run(now=after_look(made, 300)).items == 1 and status(made) == "ready"
    settings.JEDI_LIMITS = {"task.pending_changed": 300, "task.quick_retry": 200}
    other = waiting("lab.other")
    open_queue()
    pending.run(now=after_look(other, 199))
    assert status(other) == "pending"
    pending.run(now=after_look(other, 201))
    assert status(other) == "ready"


def test_after_one_change_a_task_is_tried_again_once() -> None:
    made = seen_long_ago()
    another_site()
    assert pending.run().items == 1
    later(site_waits.UNSEEN)
    job_generator.run()
    assert status(made) == "pending"
    later(timedelta(minutes=1))
    assert pending.run().items == 0
    assert TaskStatusLog.objects.filter(task_id=made, status="ready", by="pending").count() == 1


def test_a_look_within_a_second_of_a_change_is_followed_by_one_more_and_no_other() -> None:
    made = seen_long_ago()
    another_site()
    assert pending.run().items == 1
    job_generator.run()
    GridVersion.objects.update(at=after_look(made, -0.9))
    for looks in (1, 0, 0, 0):
        later(timedelta(seconds=15))
        assert pending.run().items == looks
        job_generator.run()
        assert status(made) == "pending"
    assert TaskStatusLog.objects.filter(task_id=made, status="ready", by="pending").count() == 2


@pytest.mark.parametrize(("ago", "wait"), [(0.9, timedelta(seconds=10)), (1.1, timedelta(hours=1))])
def test_a_change_just_before_the_grid_was_read_may_not_have_been_seen(
    ago: float, wait: timedelta, settings: Any
) -> None:
    """However long the look takes."""
    settings.JEDI_PENDING_RETRY_S = 3600
    made = submitted()
    ((_, fence),) = claims.claim_tasks("t", ["ready"], 1)
    read_at = the_time() - timedelta(minutes=1)
    GridVersion.objects.update(at=read_at - timedelta(seconds=ago))
    site_waits.set_aside(made, fence, by="t", reason="it waits", read_at=read_at)
    assert abs(task(made).next_check - after_look(made, 0) - wait) < timedelta(seconds=1)


def test_a_wait_that_is_set_shorter_than_a_second_has_a_task_rest_too(settings: Any) -> None:
    settings.JEDI_LIMITS = {"task.pending_changed": 0}
    made = waiting()
    open_queue()
    assert pending.run(now=after_look(made, 0.9)).items == 0
    assert pending.run(now=after_look(made, 1)).items == 1


@pytest.fixture
def _opens_with_the_verdict(books: None) -> Iterator[None]:
    """Whoever keeps a verdict finds the queue online when he is done: it is opened after the grid was read."""
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION opens() RETURNS trigger LANGUAGE plpgsql AS $$
               BEGIN UPDATE queues SET status = 'online'; RETURN NULL; END $$;
               CREATE TRIGGER opens AFTER INSERT ON verdicts FOR EACH STATEMENT EXECUTE FUNCTION opens()"""
        )
        yield
        cursor.execute("DROP FUNCTION opens() CASCADE")


@pytest.mark.usefixtures("_opens_with_the_verdict")
def test_a_change_while_the_generator_decides_is_not_lost() -> None:
    made = waiting()
    assert Queue.objects.get(pk=SITE).status == "online", "and the task has not seen it"
    assert pending.run(now=after_look(made, 9.9)).items == 0
    assert pending.run(now=after_look(made, 10.1)).items == 1
    job_generator.run()
    assert status(made) == "running"


@pytest.mark.parametrize("dated", ["with its commit", "before its commit"])
def test_a_change_that_is_not_complete_while_a_task_is_looked_at_counts_from_its_end(dated: str) -> None:
    """Its time is written just before others see it: a look between the two is followed by another."""
    closed_long_ago()
    made = submitted()
    with another() as other:
        other.execute("UPDATE queues SET status = 'online'")
        if dated == "before its commit":
            other.execute("SET CONSTRAINTS ALL IMMEDIATE")
        job_generator.run()
        assert status(made) == "pending"
        other.commit()
    later(timedelta(seconds=10))
    assert pending.run().items == 1
    job_generator.run()
    assert status(made) == "running"


def wants_preprocessing() -> int:
    closed_long_ago()
    made = two_steps()
    refiner.run()
    assert status(made) == "topreprocess"
    return made


def test_a_preprocessing_step_without_a_site_is_tried_again_like_jobs() -> None:
    made = wants_preprocessing()
    job_generator.run()
    assert status(made) == "pending"
    later(LONG_AGO)
    assert pending.run().items == 0
    open_queue()
    assert pending.run().items == 1 and status(made) == "topreprocess"
    job_generator.run()
    assert status(made) == "preprocessing"


def test_a_change_while_a_preprocessing_step_is_decided_is_not_lost() -> None:
    made = wants_preprocessing()
    claimed = prepro.claim(1)
    now = timezone.now()
    view = GridView(statistics.current_grid(now))
    open_queue()
    prepro.generate(claimed, view, now, now)
    assert status(made) == "pending"
    later(timedelta(seconds=10))
    assert pending.run().items == 1 and status(made) == "topreprocess"


def set_aside(made: int, state: str, **more: Any) -> None:
    ((_, fence),) = claims.claim_tasks("t", [state], 1, condition="t.jeditaskid = %(id)s", values={"id": made})
    task_moves.set_aside(made, fence, by="t", reason="it waits", wait=timedelta(hours=1), **more)


def test_tasks_that_wait_for_something_else_are_left_alone() -> None:
    parent = seen_long_ago()
    unread = submit(parameters("lab.unread", reads("lab.none")))
    set_aside(unread, "registered")
    child = submit(parameters("lab.child", reads("lab.t.out")), parent=parent)
    set_aside(child, "registered", frozen=False)
    add_dataset("lab.held.in", 1)
    held = submit(parameters("lab.held", reads("lab.held.in")))
    refiner.run()
    feeder.run()
    set_aside(held, "ready", frozen=False)
    paused = waiting("lab.paused")
    task_moves.move_task(paused, "paused", by="ada", old_status="ready")
    later(LONG_AGO)
    open_queue()
    assert pending.run().items == 1
    found = {made: status(made) for made in (parent, unread, child, held, paused)}
    assert found == {parent: "ready", unread: "pending", child: "pending", held: "pending", paused: "paused"}


def test_users_take_turns_in_being_tried_again() -> None:
    mine = [waiting(f"lab.m{number}", "mal") for number in range(3)]
    other = waiting("lab.a", "ada")
    later(LONG_AGO)
    open_queue()
    assert pending.run(limit=2).items == 2
    assert [status(made) for made in (*mine, other)] == ["ready", "pending", "pending", "ready"]


def test_dogs_that_run_at_once_have_each_task_tried_again_once() -> None:
    made = [waiting(f"lab.t{number}") for number in range(6)]
    later(LONG_AGO)
    open_queue()
    together(*[lambda: pending.run(limit=3)] * 4)
    pending.run()
    assert {status(one) for one in made} == {"ready"}
    assert TaskStatusLog.objects.filter(task_id__in=made, status="ready", by="pending").count() == 6


def test_a_pass_of_the_generator_decides_by_the_configuration_that_holds() -> None:
    made = seen_long_ago()
    configured.configuration()
    # By another process: this one is not told.
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO gdp_config (app, component, key, value, type)
               VALUES ('jedi', 'brokerage', 'JOB_BROKER_user', 'analysis', 'str')"""
        )
    pending.run()
    job_generator.run()
    assert VerdictRecord.objects.filter(task_id=made).latest("id").broker == "analysis"


def test_why_says_when_a_task_is_looked_at_next_before_and_after_a_change(
    api: Callable[..., Any], settings: Any
) -> None:
    settings.JEDI_LIMITS = {"task.pending_changed": 300}
    seen = {"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
    Agent.objects.update_or_create(name="pending", defaults=seen)

    def told() -> tuple[str, datetime]:
        found = api().get(f"/api/v2/tasks/{made}/why/").json()
        return found["blocked_by"]["advice"], datetime.fromisoformat(found["position"]["next_pass"])

    made = waiting()
    advice, next_pass = told()
    assert advice.startswith(f"Have {SITE} set online") and next_pass == task(made).next_check
    assert next_pass > after_look(made, 1000)
    open_queue()
    advice, next_pass = told()
    assert advice.startswith("Wait for the next pass: the grid has changed since this decision")
    assert next_pass == after_look(made, 300)
    Queue.objects.update(status="offline")
    later(timedelta(seconds=300))
    pending.run()
    job_generator.run()
    advice, next_pass = told()
    assert advice.startswith(f"Have {SITE} set online") and next_pass == task(made).next_check
    assert next_pass > after_look(made, 1000)
