"""Watchdogs over tasks, on real tasks: nothing happens just before a limit, and the right thing just after."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import (
    GdpConfig,
    GlobalShare,
    GridVersion,
    Queue,
    QueueEndpoint,
    Sample,
    Site,
    StorageEndpoint,
)
from events_app.agents import old_zips
from events_app.lifecycle.zip_rows import SCOPE
from events_app.models import Event
from jedisite.agents.registry import REGISTRY
from tasks_app.agents import adder, attention, feeder, job_generator, refiner, task_broker
from tasks_app.agents.watchdogs import (
    auto_pause,
    boost,
    exhausted,
    goals,
    old_samples,
    paused_tasks,
    pending,
    queue_filler,
    restart_contents,
    stale_locks,
    throttle,
    user_caps,
)
from tasks_app.configured import timeout_limits, timeout_table
from tasks_app.ddm.addresses import storage_path
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import AttentionItem, Command, Dataset, Job, JobFile, Task, TaskStatusLog
from tasks_app.submission import command_queue
from tests.events_app.stray_files import turn_of
from tests.flow.driving import (
    add_dataset,
    add_files,
    add_queue,
    dataset,
    files,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Pilot, always, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")
SECOND = timedelta(seconds=1)
PRODUCTION = {"prodSourceLabel": "managed", "taskType": "prod"}


@pytest.fixture(autouse=True)
def _fresh_configuration() -> Iterator[None]:
    yield
    configured.forget()


def update(table: str, key: str, value: int, **columns: Any) -> None:
    names = ", ".join(f"{name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {names} WHERE {key} = %s", [*columns.values(), value])  # noqa: S608 - ours


def made_task(number: int = 1, name: str = "lab.t", priority: int = 500, **more: Any) -> int:
    """A task whose jobs are queued, one for each file."""
    add_dataset(f"{name}.in", number)
    made = submit(
        parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, "maxAttempt": 5, "taskPriority": priority, **more}),
        priority=priority,
    )
    for run in (refiner.run, feeder.run, job_generator.run):
        wake()
        run()
    return made


def put_aside(by: str = "job_generator", priority: int = 500, **more: Any) -> int:
    """A task that is pending since nobody could place it."""
    Queue.objects.update(status="offline")
    GridVersion.objects.update(at=timezone.now() - timedelta(days=1))
    made = made_task(priority=priority, **more)
    if by != "job_generator":
        pending.run(now=timezone.now() + timedelta(hours=2))
        ((_, fence),) = claims.claim_tasks("test", ["ready"], 1, even_waiting=True)
        task_moves.set_aside(made, fence, by=by, reason="no nucleus")
    assert status(made) == "pending"
    return made


@dataclass
class Case:
    """When a time-out began to count, what the watchdog does at a moment, and what is true after it has acted."""

    since: datetime
    act: Callable[[datetime], int]
    after: Callable[[], bool]


def _rests(priority: int = 500, **more: Any) -> Case:
    made = put_aside("job_generator", priority, **more)
    since = task(made).state_change_time
    assert since
    return Case(since, lambda now: pending.run(now=now).items, lambda: status(made) == "ready")


def _changed() -> Case:
    case = _rests(**PRODUCTION)
    Queue.objects.update(status="online")
    return case


def _stuck() -> Case:
    made = put_aside()
    since = task(made).frozen_time
    assert since
    update("jedi_tasks", "jeditaskid", made, next_check_at=since + timedelta(days=30))
    return Case(since, lambda now: pending.run(now=now).items, lambda: status(made) == "exhausted")


def exhausted_task(**more: Any) -> tuple[int, datetime]:
    made = made_task(2, **more)
    pilot = Pilot(failing_on("lab.t.in.00001"))
    pilot.work(2)
    settle()
    task_moves.move_task(made, "exhausted", by="test", remember=True, error_dialog="its scouts failed")
    since = task(made).state_change_time
    assert since
    return made, since


def _exhausted() -> Case:
    made, since = exhausted_task()
    return Case(
        since,
        lambda now: exhausted.run(now=now).items,
        lambda: Command.objects.filter(task=made, name="finish").exists(),
    )


def _throttled() -> Case:
    made = made_task(2)
    update("jedi_tasks", "jeditaskid", made, numthrottled=0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET attemptnr = 6 WHERE jeditaskid = %s", [made])
    since = timezone.now()
    assert throttle.run(now=since).items == 0, "nothing is left to hold"
    update("jedi_datasets", "datasetid", dataset(made).id, nfilestobeused=3)
    assert throttle.run(now=since).items == 1

    def act(now: datetime) -> int:
        return throttle.run(now=now).items

    def after() -> bool:
        update("jedi_datasets", "datasetid", dataset(made).id, nfilestobeused=2)
        return status(made) == "running"

    return Case(since, act, after)


def _throttled_user() -> Case:
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 1}
    made = made_task(2)
    pilot = Pilot()
    for job in pilot.fetch(1):
        pilot.start(job)
    since = timezone.now()
    user_caps.run(now=since)
    assert status(made) == "throttled"

    def after() -> bool:
        return task(made).throttled_time == since + 2 * timeout_limits.limit("task.throttled_user")

    return Case(since, lambda now: user_caps.run(now=now).items, after)


def _paused() -> Case:
    made = made_task(2)
    task_moves.move_task(made, "paused", by="ada", remember=True)
    _, second = jobs(made)
    update("jobs", "pandaid", second.id, jobstatus="assigned")
    since = task(made).state_change_time
    assert since
    return Case(
        since, lambda now: paused_tasks.run(now=now).items, lambda: states(made) == {"throttled": 1, "closed": 1}
    )


def _forgotten() -> Case:
    made = made_task(2)
    update("jedi_datasets", "datasetid", dataset(made).id, status="toupdate")
    moments = (task(made).modification_time, dataset(made).modification_time)
    return Case(max(moments), lambda now: restart_contents.run(now=now).items, lambda: status(made) == "defined")


def _claimed() -> Case:
    made = made_task()
    claims.claim_tasks("somebody on another host-1", ["running"], 1, even_waiting=True)
    since = task(made).locked_time
    assert since
    return Case(since, lambda now: stale_locks.run(now=now).items, lambda: task(made).locked_by is None)


def _growing() -> Case:
    add_dataset("lab.t.in", 1, open=True)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1, runUntilClosed=True))
    settle()
    since = dataset(made).state_check_time
    assert since
    add_files("lab.t.in", [5])

    def act(now: datetime) -> int:
        feeder.run(now=now)
        return 1

    return Case(since, act, lambda: dataset(made).files == 2)


def _assigning(*, seen: bool) -> Case:
    """A task without a nucleus: the only one is full, and has space after the first look. `seen`: the change is seen."""
    value = {"key": "TASK_BROKER_managed", "value": "production", "type": "str", "vo": "lab"}
    GdpConfig.objects.create(app="jedi", component="brokerage", **value)
    configured.forget()
    Site.objects.create(name="NUC", role="nucleus")
    queue = add_queue("NUC_Q", site_name="NUC", capability="")
    disk = StorageEndpoint.objects.create(name="NUC_DISK", site_name="NUC", space_total_gb=2e6, space_free_gb=0)
    QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)
    add_dataset("lab.n.in", 4, events=100)
    made = submit(parameters("lab.n", reads("lab.n.in"), nFilesPerJob=2, cpuTime=10, **PRODUCTION))
    for run in (refiner.run, feeder.run, task_broker.run):
        run()
    assert status(made) == "assigning"
    due = task(made).next_check
    StorageEndpoint.objects.update(space_free_gb=1e6)
    if not seen:
        GridVersion.objects.update(at=due - timedelta(days=1))

    def act(now: datetime) -> int:
        update("jedi_tasks", "jeditaskid", made, next_check_at=timezone.now() + (due - now))
        return task_broker.run(now=now).items

    return Case(due - timeout_limits.limit("task.assigning"), act, lambda: task(made).nucleus == "NUC")


def _empty_queue() -> Case:
    add_dataset("lab.large.in", 150)
    made = submit(parameters("lab.large", reads("lab.large.in"), nFilesPerJob=1, **PRODUCTION))
    for run in (refiner.run, feeder.run):
        wake()
        run()
    since = timezone.now()
    queue_filler.run(now=since)
    return Case(since, lambda now: queue_filler.run(now=now).items, lambda: task(made).site == "SITE_A")


def _gone() -> Case:
    at = timezone.now() - timedelta(days=1)
    AttentionItem.objects.create(key="x:1", kind="x", tone="bad", sentence="x", since=at, path="/", gone_at=at)
    return Case(at, lambda now: attention.run_slow(now=now).items, lambda: not AttentionItem.objects.exists())


def _sample(share: str, rows: int) -> Case:
    """A sample of a site, or of a share there, is deleted, and that of the whole grid beside it kept as long as it may."""
    at = timezone.now() - timedelta(days=1)
    for site, of in (("SITE_A", share), ("", "")):
        Sample.objects.create(at=at, site=site, share=of)
    return Case(at, lambda now: old_samples.run(now=now).items, lambda: Sample.objects.count() == 2 - rows)


def _kept_zip() -> Case:
    """A task has ended with a range that was processed and not merged."""
    made, at = made_task(), timezone.now() - timedelta(days=1)
    drive(Pilot())
    job = jobs(made)[0].id
    update("jedi_tasks", "jeditaskid", made, statechangetime=at)
    row = JobFile.objects.create(job_id=job, task_id=made, type="zipoutput", lfn="z.tar", status="ready")
    Event.objects.create(task_id=made, dataset_id=1, job_id=job, file_id=1, process_id=1, status=6, zip_row_id=row.id)
    return Case(
        at,
        lambda now: old_zips.run(now=now).items,
        lambda: JobFile.objects.filter(pk=row.id, status="deleted").exists(),
    )


def _stray_zip() -> Case:
    path = storage_path(Path(settings.JEDI_STORAGE), SCOPE, "EventService_premerge_1-2-3-4-5.tar")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"outputs")
    at = turn_of(path, timezone.now()) - timeout_limits.limit("zip.stray")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return Case(at, lambda now: old_zips.run(now=now).items, lambda: not path.exists())


CASES: dict[str, Callable[[], Case]] = {
    "task.quick_retry": _rests,
    "task.pending": lambda: _rests(**PRODUCTION),
    "task.pending_analysis": _rests,
    "task.pending_900": lambda: _rests(priority=900, **PRODUCTION),
    "task.pending_950": lambda: _rests(priority=950, **PRODUCTION),
    "task.pending_changed": _changed,
    "task.stuck": _stuck,
    "task.exhausted": _exhausted,
    "task.throttled_attempts": _throttled,
    "task.throttled_user": _throttled_user,
    "task.paused_jobs": _paused,
    "task.assigning": lambda: _assigning(seen=False),
    "task.assigning_changed": lambda: _assigning(seen=True),
    "task.empty_queue": _empty_queue,
    "dataset.growing": _growing,
    "dataset.forgotten": _forgotten,
    "lock.task": _claimed,
    "attention.gone": _gone,
    "sample.all": lambda: _sample("", 2),
    "sample.pair": lambda: _sample("User", 1),
    "zip.kept": _kept_zip,
    "zip.stray": _stray_zip,
}
PERIODS = {"task.goal": "goals", "task.crowding": "user_caps", "task.withheld": "task_withholder"}


def test_every_row_of_the_table_has_a_case() -> None:
    rows = {name for name in timeout_table.TABLE if not name.startswith("job.")}
    assert rows == set(CASES) | set(PERIODS)
    for name, agent in PERIODS.items():
        assert REGISTRY[agent].period_s == timeout_limits.limit(name).total_seconds()
    for row in timeout_table.TABLE.values():
        assert row.agent in REGISTRY
        assert row.source and row.effect and row.condition


@pytest.mark.parametrize("name", sorted(CASES))
def test_nothing_happens_before_the_limit_and_the_right_thing_after(name: str, settings: Any) -> None:
    if name.startswith("task.pending"):
        settings.JEDI_PENDING_RETRY_S = 0
    settings.JEDI_LIMITS = {}
    case, limit = CASES[name](), timeout_limits.limit(name)
    case.act(case.since + limit - SECOND)
    assert not case.after()
    assert case.act(case.since + limit + timedelta(milliseconds=50)) >= 1
    assert case.after() or name == "task.throttled_user"


def test_a_task_that_goes_back_and_forth_is_exhausted_after_a_week_all_the_same() -> None:
    made = put_aside()
    frozen = task(made).frozen_time
    assert frozen
    for day in range(1, 7):
        pending.run(now=frozen + timedelta(days=day))
        assert status(made) == "ready"
        wake()
        job_generator.run()
        assert status(made) == "pending"
        assert task(made).frozen_time == frozen
    pending.run(now=frozen + timedelta(days=7))
    assert status(made) == "exhausted"
    assert "the limit is 7 d" in (task(made).error_dialog or "")
    assert "offline" in (task(made).error_dialog or ""), "and why it could not be placed"


def test_a_task_that_gets_jobs_is_not_stuck() -> None:
    add_dataset("lab.t.in", 250)
    made = submit(parameters("lab.t", reads("lab.t.in"), nFilesPerJob=1, maxAttempt=5))
    settle()
    Queue.objects.update(status="offline")
    wake()
    job_generator.run()
    assert (status(made), task(made).frozen_time is None) == ("pending", False)
    Queue.objects.update(status="online")
    Pilot().work(60)
    settle()
    assert (status(made), task(made).frozen_time) == ("running", None)


def test_a_task_whose_parent_works_waits_without_end() -> None:
    parent = made_task(name="lab.parent")
    Queue.objects.update(status="offline")
    made = made_task(name="lab.child")
    update("jedi_tasks", "jeditaskid", made, parent_tid=parent)
    frozen = task(made).frozen_time
    assert frozen
    pending.run(now=frozen + timedelta(days=70))
    assert status(made) == "ready"
    Queue.objects.update(status="online")


def test_an_exhausted_task_ends_with_what_it_has_and_its_books_are_closed() -> None:
    made, since = exhausted_task()
    assert exhausted.run(now=since + timedelta(days=10)).items == 1
    assert exhausted.run(now=since + timedelta(days=10)).items == 0, "the command waits already"
    drive(Pilot())
    assert status(made) == "finished"
    row = dataset(made)
    assert (row.files_finished, row.files_failed, row.files_used) == (1, 1, 2)
    given = Command.objects.get(task=made)
    assert (given.owner, "the limit is 10 d" in given.comment) == ("exhausted", True)


def test_a_task_that_waits_for_a_person_stays_exhausted() -> None:
    made, since = exhausted_task(disableAutoFinish=True)
    assert exhausted.run(now=since + timedelta(days=1000)).items == 0
    assert status(made) == "exhausted"


def test_many_attempts_throttle_for_two_hours_then_for_eight() -> None:
    made = made_task(1, maxAttempt=20)
    update("jedi_tasks", "jeditaskid", made, numthrottled=0)
    for attempts, minutes in ((5, 120), (10, 480), (15, 1080)):
        started = timezone.now()
        drive(Pilot(always("failed")))
        held = task(made)
        assert (held.status, held.num_throttled, files(made)[0].attempt) == ("throttled", attempts // 5, attempts)
        assert held.throttled_time
        lasts = held.throttled_time - started
        assert timedelta(minutes=minutes) <= lasts < timedelta(minutes=minutes, seconds=60)
        assert f"for {minutes} minutes" in (held.error_dialog or "")
        throttle.run(now=held.throttled_time - SECOND)
        assert status(made) == "throttled"
        throttle.run(now=held.throttled_time)
        assert (status(made), task(made).error_dialog, task(made).old_status) == ("running", None, None)
    drive(Pilot())
    assert status(made) == "done"


def test_tasks_without_throttling_try_on() -> None:
    made = made_task(1, maxAttempt=8)
    drive(Pilot(always("failed")))
    assert status(made) == "failed"
    assert files(made)[0].attempt == 8


def test_a_throttled_task_without_files_left_goes_on_at_once() -> None:
    made = made_task(2)
    task_moves.move_task(
        made,
        "throttled",
        by="test",
        remember=True,
        throttled_time=timezone.now() + timedelta(days=1),
        error_dialog="x (type=jobs)",
    )
    assert throttle.run().items == 1
    assert status(made) == "running"
    drive(Pilot())
    assert status(made) == "done"


def nearly_done(number: int = 20, left: int = 1, **more: Any) -> int:
    made = made_task(number, **more)
    Pilot().work(number - left)
    adder.run()
    return made


def test_the_last_jobs_of_a_nearly_complete_task_are_hurried_once() -> None:
    made = nearly_done(**PRODUCTION)
    assert boost.run().items == 1
    assert (task(made).current_priority, task(made).gshare) == (900, "Express")
    (job,) = jobs(made, status="activated")
    assert (job.current_priority, job.gshare) == (900, "Express")
    assert (
        "95 % of 20 files are done and 1 job is left"
        in TaskStatusLog.objects.filter(task_id=made, by="boost").get().reason
    )
    assert boost.run().items == 0
    drive(Pilot())
    assert status(made) == "done"


def test_without_a_share_express_among_the_shares_only_the_priority_is_raised() -> None:
    GlobalShare.objects.create(name="All", value=1)
    made = nearly_done(**PRODUCTION)
    assert boost.run().items == 1
    assert (task(made).current_priority, task(made).gshare) == (900, "All")
    assert boost.run().items == 0
    GlobalShare.objects.create(name="Express", value=1, processing_type="urgent")
    assert boost.run().items == 1
    assert task(made).gshare == "Express"


@pytest.mark.parametrize("label", ["user", "test"])
def test_analysis_keeps_its_share(label: str) -> None:
    made = nearly_done(prodSourceLabel=label)
    assert boost.run().items == 1
    assert (task(made).current_priority, task(made).gshare) == (900, None)
    assert boost.run().items == 0


@pytest.mark.parametrize("why", ["not complete enough", "too many jobs", "its parent works", "its input grows"])
def test_other_tasks_are_not_hurried(why: str, settings: Any) -> None:
    made = nearly_done(20, 2 if why == "not complete enough" else 1, **PRODUCTION)
    if why == "too many jobs":
        settings.JEDI_LIMITS = {"BOOST_JOBS_BELOW": 1}
    if why == "its parent works":
        update("jedi_tasks", "jeditaskid", made, parent_tid=made_task(name="lab.parent"))
    if why == "its input grows":
        update("jedi_datasets", "datasetid", dataset(made).id, state="mutable")
    assert boost.run().items == 0
    assert task(made).current_priority == 500


def failing_task(name: str, request_type: str, **more: Any) -> int:
    made = made_task(6, name, **more)
    update("jedi_tasks", "jeditaskid", made, requesttype=request_type)
    return made


def test_a_task_too_many_of_whose_jobs_fail_is_paused_with_its_siblings(settings: Any) -> None:
    bad = failing_task("lab.bad", "same")
    sibling = failing_task("lab.sibling", "same")
    spared = failing_task("lab.spared", "same", noAutoPause=True)
    other = failing_task("lab.other", "different")
    pilot = Pilot(lambda job: "failed" if "lab.bad" in job["inFiles"] else "finished")
    pilot.work(6)
    adder.run()
    assert auto_pause.run().items == 0, "off unless a rate is set"
    settings.JEDI_LIMITS = {
        "MAX_JOB_FAILURE_RATE_TO_PAUSE_user": 0.9,
        "MIN_JOBS_TO_PAUSE": 6,
        "MIN_REMAINING_JOBS_TO_PAUSE": 1,
    }
    job_generator.run()
    assert states(bad)["failed"] == 6
    assert auto_pause.run().items == 2
    assert auto_pause.run().items == 0, "the commands wait already"
    settle()
    assert [status(t) for t in (bad, sibling)] == ["paused", "paused"]
    assert "paused" not in [status(t) for t in (spared, other)]
    assert "6 of 6 jobs failed" in (TaskStatusLog.objects.filter(task_id=bad, status="paused").get().reason)


def test_lost_work_pauses_too_and_a_task_may_forbid_it(settings: Any) -> None:
    settings.JEDI_LIMITS = {
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE": 0.5,
        "MIN_JOBS_TO_PAUSE": 6,
        "MIN_REMAINING_JOBS_TO_PAUSE": 1,
    }
    bad = failing_task("lab.bad", "")
    spared = failing_task("lab.spared", "", noAutoPause=True)
    pilot = Pilot(lambda job: "failed" if job["inFiles"].endswith("00000") else "finished")
    pilot.work(8)
    adder.run()
    hour = timedelta(hours=1)
    for job in Job.objects.filter(status__in=("failed", "finished")):
        length = 10 * hour if job.status == "failed" else hour
        assert job.end_time
        update("jobs", "pandaid", job.id, starttime=job.end_time - length)
    assert auto_pause.run().items == 1
    settle()
    assert (status(bad), status(spared) != "paused") == ("paused", True)


def test_a_task_that_has_reached_its_goal_is_finished_gently_once_every_file_was_tried() -> None:
    made = made_task(4, goal=50.0)
    assert task(made).goal == 500
    pilot = Pilot(failing_on("lab.t.in.00002", "lab.t.in.00003"))
    for job in pilot.fetch(3):
        pilot.start(job)
        pilot.end(job)
    adder.run()
    assert goals.run().items == 0, "one file has not been tried"
    for job in pilot.fetch(1):
        pilot.start(job)
        pilot.end(job)
    adder.run()
    assert goals.run().items == 1
    assert Command.objects.get(task=made).parameters == {"soft": True}
    drive(Pilot())
    assert status(made) == "finished"
    assert dataset(made).files_finished == 2


def test_below_its_goal_a_task_goes_on() -> None:
    made = made_task(4, goal=75.0)
    pilot = Pilot(failing_on("lab.t.in.00002", "lab.t.in.00003"))
    pilot.work(4)
    adder.run()
    assert goals.run().items == 0
    drive(Pilot())
    assert status(made) == "done"


def test_jobs_of_paused_tasks_are_quiet_and_come_back_with_the_task() -> None:
    case = _paused()
    case.act(case.since + timedelta(minutes=10))
    assert case.after()
    made = Task.objects.get().id
    closed = jobs(made, status="closed")[0]
    assert (closed.sub_status, closed.task_buffer_error_code) == ("toreassign", 151)
    command_queue.give_command(made, "resume", by="ada")
    drive(Pilot())
    assert status(made) == "done"


def test_an_input_that_nobody_read_is_read_after_all() -> None:
    made = made_task(2)
    case_dataset = dataset(made)
    update("jedi_datasets", "datasetid", case_dataset.id, status="defined")
    drive(Pilot())
    assert status(made) == "running", "nobody looks at it"
    assert restart_contents.run(now=timezone.now() + timedelta(minutes=31)).items == 1
    drive(Pilot())
    assert status(made) == "done"
    assert Dataset.objects.get(pk=case_dataset.id).files == 2


def queue_users(number: int = 4, running: int = 2, **more: Any) -> tuple[int, Pilot]:
    made = made_task(number, **more)
    pilot = Pilot()
    for job in pilot.fetch(running):
        pilot.start(job)
    return made, pilot


@pytest.mark.parametrize("label", ["user", "test"])
def test_a_user_at_the_cap_gets_no_new_jobs_and_queued_ones_are_held_until_there_is_room(
    label: str, settings: Any
) -> None:
    made, pilot = queue_users(prodSourceLabel=label)
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 2}
    user_caps.run()
    assert status(made) == "throttled"
    assert "ada: 2 jobs are running, the cap is 2 (type=jobs)" in (task(made).error_dialog or "")
    assert states(made) == {"running": 2, "throttled": 2}
    for job in pilot.ran:
        pilot.end(job, "finished")
    adder.run()
    user_caps.run()
    assert status(made) == "running"
    assert states(made) == {"finished": 2, "activated": 2}
    drive(Pilot())
    assert status(made) == "done"


def test_tests_of_the_site_itself_count_for_nobody(settings: Any) -> None:
    own, _ = queue_users(prodSourceLabel="test", taskType="prod")
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 1}
    user_caps.run()
    assert (status(own), states(own)) == ("running", {"running": 2, "activated": 2})


def test_without_a_cap_held_jobs_and_tasks_are_let_go(settings: Any) -> None:
    made, _ = queue_users()
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_CORES": 1}
    user_caps.run()
    assert (status(made), states(made)) == ("throttled", {"running": 2, "throttled": 2})
    settings.JEDI_LIMITS = {}
    user_caps.run()
    assert (status(made), states(made)) == ("running", {"running": 2, "activated": 2})


def test_a_cap_concerns_its_user_only_and_paused_tasks_keep_their_jobs_held(settings: Any) -> None:
    made, _ = queue_users()
    other = made_task(3, "lab.other")
    update("jedi_tasks", "jeditaskid", other, username="eve")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET produsername = 'eve' WHERE jeditaskid = %s", [other])
    command_queue.give_command(other, "pause", by="eve")
    settle()
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 2}
    user_caps.run()
    assert (status(made), status(other)) == ("throttled", "paused")
    assert states(other) == {"throttled": 3}


def test_a_working_group_has_a_cap_of_its_own(settings: Any) -> None:
    made, _ = queue_users(workingGroup="higgs")
    settings.JEDI_LIMITS = {"CAP_RUNNING_USER_JOBS": 1}
    user_caps.run()
    assert status(made) == "running", "its jobs count for the group"
    settings.JEDI_LIMITS = {"CAP_RUNNING_GROUP_JOBS": 1}
    user_caps.run()
    assert status(made) == "throttled"
    assert "group higgs: 2 jobs are running" in (task(made).error_dialog or "")


def test_too_many_bytes_on_their_way_throttle_a_users_tasks_until_they_have_arrived(settings: Any) -> None:
    made = made_task(2)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET jobstatus = 'assigned', inputfilebytes = %s WHERE jeditaskid = %s", [10**9, made]
        )
    settings.JEDI_LIMITS = {"USER_TRANSFER_LIMIT": 2}
    user_caps.run()
    assert status(made) == "running"
    settings.JEDI_LIMITS = {"USER_TRANSFER_LIMIT": 1.9}
    user_caps.run()
    assert status(made) == "throttled"
    assert "2 GB are on the way, the limit is 1.9 (type=transfer)" in (task(made).error_dialog or "")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jobstatus = 'activated' WHERE jeditaskid = %s", [made])
    user_caps.run()
    assert status(made) == "running"
    drive(Pilot())
    assert status(made) == "done"


def test_limits_are_set_by_name_and_a_wrong_name_is_an_error(settings: Any) -> None:
    settings.JEDI_LIMITS = {"task.exhausted": 60, "job.sent": 5, "CAP_RUNNING_USER_JOB": 4}
    assert timeout_limits.limit("task.exhausted") == timedelta(minutes=1)
    assert timeout_limits.limit("job.sent") == timedelta(seconds=5)
    (error,) = timeout_limits.check_limits()
    assert "CAP_RUNNING_USER_JOB" in error.msg
