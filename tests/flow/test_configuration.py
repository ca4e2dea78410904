"""A row of the configuration changes what the agents do; the environment of a machine wins over it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.grid.configuring import set_value, unset_value
from brokerage_app.models import Queue, WorkQueue
from brokerage_app.policy.parameters import known
from tasks_app.agents import adder, commando, job_generator, merger, refiner
from tasks_app.agents.watchdogs import auto_pause, boost, pending, user_caps
from tasks_app.configured import timeout_limits, timeout_table
from tasks_app.domain.job_refusal_codes import JOB_LOST_HEARTBEAT
from tasks_app.explaining.rules.answers import Gate
from tasks_app.explaining.why_job import explain
from tasks_app.models import CatalogueDataset, Job, Task
from tasks_app.outcomes.dataset_endings import _set_lifetimes
from tasks_app.scouts.scout_sample import limits_for, settings_for
from tasks_app.submission import command_queue, submitting
from tasks_app.submission.rehearsal import policy_of
from tests.flow.driving import add_dataset, jobs, parameters, reads, settle, status, submit, task, wake
from tests.flow.pilot import Pilot, drive
from tests.flow.test_again import ADA
from tests.flow.test_build import build_task
from tests.flow.test_job_timeouts import CASES, both_dogs, one_job, put
from tests.flow.test_merging import first_jobs, merging_task
from tests.flow.test_scouting import finish, scouting_task
from tests.flow.test_watchdogs import failing_task, made_task, put_aside, update

pytestmark = pytest.mark.usefixtures("books")
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def conf(component: str, key: str, value: str, vo: str = "") -> None:
    set_value(component, key, value, vo=vo, by="ada")


@pytest.mark.parametrize(
    ("rows", "hours"),
    [
        ([], 168),
        ([("PENDING_TIMEOUT", "5", "")], 5),
        ([("PENDING_TIMEOUT_user", "24", ""), ("PENDING_TIMEOUT", "5", "")], 24),
        ([("PENDING_TIMEOUT_managed", "24", ""), ("PENDING_TIMEOUT", "5", "lab")], 5),
        ([("PENDING_TIMEOUT_user", "24", ""), ("PENDING_TIMEOUT_user", "12", "lab")], 12),
        ([("PENDING_TIMEOUT_user", "24", ""), ("PENDING_TIMEOUT_user", "12", "atlas")], 24),
    ],
)
def test_a_stuck_task_is_given_up_after_the_time_of_its_label_and_vo(rows: list[Any], hours: int) -> None:
    for key, value, vo in rows:
        conf("watchdog", key, value, vo)
    made = put_aside()
    since = task(made).frozen_time
    assert since
    update("jedi_tasks", "jeditaskid", made, next_check_at=since + timedelta(days=30))
    assert pending.run(now=since + hours * HOUR - SECOND).items == 0
    assert pending.run(now=since + hours * HOUR + SECOND).items == 1
    assert status(made) == "exhausted"


def test_jedi_limits_win_over_the_configuration(settings: Any) -> None:
    conf("watchdog", "PENDING_TIMEOUT_user", "24")
    settings.JEDI_LIMITS = {"task.stuck": 60, "CAP_RUNNING_USER_JOBS": 3}
    assert timeout_limits.limit("task.stuck", "user") == timedelta(minutes=1)
    assert timeout_limits.stuck_sql() == "interval '60.0 seconds'"
    conf("prio_mgr", "CAP_RUNNING_USER_JOBS", "1")
    made = made_task(2)
    for job in (pilot := Pilot()).fetch(2):
        pilot.start(job)
    user_caps.run()
    assert status(made) == "running", "2 of 3"
    settings.JEDI_LIMITS = {}
    user_caps.run()
    assert status(made) == "throttled", "2 of 1"


HEARTBEAT = ("watcher", "HEARTBEAT_TIMEOUT")


@pytest.mark.parametrize(
    ("rule", "rows", "hours"),
    [
        ("defined", [("job_timeout", "TIMEOUT_defined", "1", "")], 1),
        ("build_defined", [("job_timeout", "TIMEOUT_defined", "1", "")], 1),
        ("holding", [("job_timeout", "TIMEOUT_holding", "24", "lab")], 24),
        ("holding", [("job_timeout", "TIMEOUT_holding", "24", "atlas")], 48),
        ("heartbeat", [(*HEARTBEAT, "1", "")], 1),
        ("heartbeat", [("watcher", "HEARTBEAT_TIMEOUT_production", "3", ""), (*HEARTBEAT, "1", "")], 3),
        (
            "heartbeat",
            [("watcher", "HEARTBEAT_TIMEOUT_push", "5", ""), ("watcher", "HEARTBEAT_TIMEOUT_production", "3", "")],
            5,
        ),
        ("heartbeat", [("watcher", "HEARTBEAT_TIMEOUT_analysis", "5", "")], 2),
        ("own_transfer", [("watcher", "HEARTBEAT_TIMEOUT_push", "5", "")], 5),
        ("analysis", [("rebroker", "ANALY_TIMEOUT", "6", "")], 6),
        ("analysis", [("rebroker", "ANALY_TIMEOUT_phys'exot", "20", ""), ("rebroker", "ANALY_TIMEOUT", "6", "")], 20),
        ("analysis", [("rebroker", "ANALY_TIMEOUT_other", "20", ""), ("rebroker", "ANALY_TIMEOUT", "6", "lab")], 6),
    ],
)
def test_jobs_time_out_after_what_is_configured(rule: str, rows: list[tuple[str, str, str, str]], hours: float) -> None:
    for component, key, value, vo in rows:
        conf(component, key, value, vo)
    Queue.objects.update(data={"workflow": "push"})
    made, job_id = one_job()
    case = CASES[rule]
    if case["jobstatus"] not in ("defined", "activated"):
        Pilot().fetch()
    since = timezone.now()
    put(job_id, since, workinggroup="phys'exot", **case)
    assert both_dogs(since + hours * HOUR - SECOND) == 0
    assert both_dogs(since + hours * HOUR + SECOND) == 1
    drive(Pilot())
    assert status(made) == "done"


@pytest.mark.parametrize(
    ("state", "limits", "rows", "minutes"),
    [
        ("sent", {}, [], 30),
        ("sent", {"job.sent": 600}, [], 10),
        ("running", {}, [], 120),
        ("running", {"job.heartbeat": 600}, [], 10),
        ("running", {}, [("watcher", "HEARTBEAT_TIMEOUT_push", "5", ""), (*HEARTBEAT, "1", "")], 300),
        ("running", {}, [(*HEARTBEAT, "1", "lab")], 60),
    ],
)
def test_a_job_is_said_to_be_lost_when_its_watchdog_ends_it(
    state: str, limits: dict[str, float], rows: list[tuple[str, str, str, str]], minutes: float, settings: Any
) -> None:
    settings.JEDI_LIMITS = limits
    for component, key, value, vo in rows:
        conf(component, key, value, vo)
    Queue.objects.update(data={"workflow": "push"})
    _, job_id = one_job()
    Pilot().fetch()
    since = timezone.now()
    put(job_id, since, **CASES["sent" if state == "sent" else "heartbeat"])
    limit = timedelta(minutes=minutes)

    def said(now: datetime) -> Gate | None:
        return next(
            (gate for gate in explain(Job.objects.get(pk=job_id), now).gates if gate.code == JOB_LOST_HEARTBEAT), None
        )

    assert both_dogs(since + limit - SECOND) == 0 and said(since + limit - SECOND) is None
    lost = said(since + limit + SECOND)
    assert lost is not None and lost.sentence.endswith(f"; after {minutes * 60:.0f} s the job counts as lost")
    Queue.objects.update(status="paused")
    assert both_dogs(since + limit + SECOND) == 0 and said(since + limit + SECOND) is None
    Queue.objects.update(status="online")
    assert both_dogs(since + limit + SECOND) == 1


def test_the_parameters_of_time_outs_have_the_defaults_of_the_table() -> None:
    """What brokers' configuration shows and what holds without a row are written in two rooms."""
    for name, (component, key) in timeout_table.PARAMETERS.items():
        assert timedelta(hours=known(component, key).default) == timeout_table.TABLE[name].default, name


@pytest.mark.parametrize("by", ["share", "work queue", "partition"])
def test_tasks_are_paused_by_the_rate_of_their_share_or_queue(by: str) -> None:
    bad, other = failing_task("lab.bad", ""), failing_task("lab.other", "")
    for made, name in ((bad, "MC 16 simul"), (other, "MC 16 evgen")):
        queue = WorkQueue(name=name, type="user", vo="lab")
        if by == "share":
            update("jedi_tasks", "jeditaskid", made, gshare=name)
            continue
        if by == "partition":
            whole = WorkQueue.objects.create(name=name, type="user", vo="lab", partition_id=-1)
            queue = WorkQueue(name=f"part {made}", type="user", vo="lab", partition_id=whole.id)
        queue.save()
        update("jedi_tasks", "jeditaskid", made, workqueue_id=queue.id)
    Pilot(lambda job: "failed").work(12)
    adder.run()
    job_generator.run()
    assert auto_pause.run().items == 0, "off unless a rate is set"
    conf("watchdog", "MIN_JOBS_TO_PAUSE_user", "6")
    conf("watchdog", "MIN_REMAINING_JOBS_TO_PAUSE", "1")
    conf("watchdog", "MAX_JOB_FAILURE_RATE_TO_PAUSE_user_MC 16 simul", "0.9", vo="lab")
    assert auto_pause.run().items == 1
    commando.run()
    assert [status(made) == "paused" for made in (bad, other)] == [True, False]
    for made in (bad, other):
        command_queue.give_command(made, "kill", by="ada")
    settle()


def test_volumes_on_their_way_have_the_documents_limit_unless_another_is_set() -> None:
    made = made_task(2)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET jobstatus = 'assigned', inputfilebytes = %s WHERE jeditaskid = %s", [6 * 10**11, made]
        )
    conf("anal_watchdog", "USER_TRANSFER_LIMIT", "1300")
    user_caps.run()
    assert status(made) == "running"
    unset_value("anal_watchdog", "USER_TRANSFER_LIMIT", by="ada")
    user_caps.run()
    assert status(made) == "throttled"
    assert "1200 GB are on the way, the limit is 1024" in (task(made).error_dialog or "")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET jobstatus = 'activated' WHERE jeditaskid = %s", [made])
    user_caps.run()
    drive(Pilot())
    assert status(made) == "done"


def test_tasks_are_hurried_from_the_part_that_is_configured() -> None:
    made = made_task(10)
    Pilot().work(5)
    adder.run()
    assert boost.run().items == 0
    conf("watchdog", "BOOST_DONE_PERCENT", "50")
    assert boost.run().items == 1
    assert task(made).current_priority == 900
    drive(Pilot())


def test_scouts_are_judged_by_the_limits_of_their_label() -> None:
    conf("dbproxy", "RAM_THR_EXAUSTED", "9")
    conf("dbproxy", "SCOUT_RAMCOUNT_MARGIN", "0")
    Queue.objects.update(max_memory_mb=16_000)
    made = scouting_task(40, ramUnit="MBPerCore")
    finish(Pilot().fetch(10), max_pss_kb=8000 * 1024)
    settle()
    assert (task(made).ram_count, status(made)) == (8000, "running")
    drive(Pilot())


def test_thresholds_of_scouts_are_those_of_label_and_vo(make_task: Callable[..., Task]) -> None:
    analysis = Task(prod_source_label="user", vo="lab")
    usual = limits_for(analysis)
    assert (usual.short_minutes, usual.min_ok_rate) == (4.0, None)
    assert limits_for(Task(prod_source_label="managed")).wrong_cpu_factor == 2.0
    conf("dbproxy", "SCOUT_SHORT_EXECTIME_user", "10")
    conf("dbproxy", "SCOUT_MIN_OK_RATE_EXHAUSTED_user", "0.3", vo="lab")
    conf("dbproxy", "SCOUT_WRONG_CPUTIME_THRESHOLD", "0")
    conf("dbproxy", "SCOUT_CPUTIME_RANK", "50")
    conf("dbproxy", "SCOUT_DISK_IO_CAP", "700")
    assert (limits_for(analysis).short_minutes, limits_for(analysis).min_ok_rate) == (10.0, 0.3)
    assert limits_for(Task(prod_source_label="user")).min_ok_rate is None
    assert limits_for(Task(prod_source_label="managed")).wrong_cpu_factor is None
    measured = settings_for(Task(ram_count=2000))
    assert (measured.cpu_time_rank, measured.disk_io_cap_kb_s, measured.ram_min_mb) == (50.0, 700, 1000)


def test_what_users_tasks_are_refined_with(make_task: Callable[..., Task]) -> None:
    mine = make_task(id=30_000_001, vo="atlas", prod_source_label="user", task_type="anal")
    usual = policy_of(mine)
    assert (usual.out_disk_kb, usual.max_core_count, usual.target_walltime_h) == (500, 16, None)
    assert (usual.move_input_percent, usual.push_status_percent) == (0.0, None)
    for key, value in (
        ("OUTDISKCOUNT_ANALY_KB", "700"),
        ("USER_TASKS_MAX_CORE_COUNT", "8"),
        ("USER_JOB_TARGET_WALLTIME", "10"),
        ("USER_TASKS_MOVE_INPUT", "50"),
        ("USER_TASKS_PUSH_STATUS_CHANGES_PERCENT", "20"),
        ("PROD_TASKS_PUSH_STATUS_CHANGES_PERCENT", "30"),
    ):
        conf("taskrefiner", key, value, vo="atlas")
    policy = policy_of(mine)
    assert (policy.out_disk_kb, policy.max_core_count, policy.target_walltime_h) == (700, 8, 10)
    assert (policy.move_input_percent, policy.push_status_percent) == (50, 20)
    assert policy_of(Task(id=1, vo="atlas", prod_source_label="managed", task_type="prod")).push_status_percent == 30
    assert policy_of(Task(id=1, vo="lab", prod_source_label="user", task_type="anal")).move_input_percent == 0.0
    assert policy_of(mine).draws == policy.draws, "the same task, the same chance"
    moved = sum(policy_of(Task(id=n, vo="atlas")).draws.move_input < 0.5 for n in range(1000))
    assert 400 < moved < 600
    mine.delete()


@pytest.mark.parametrize("percent", [0, 100])
@pytest.mark.parametrize(("label", "kind"), [("user", "anal"), ("managed", "prod")])
def test_so_many_tasks_as_are_configured_publish_each_change(label: str, kind: str, percent: int) -> None:
    conf("taskrefiner", "USER_TASKS_PUSH_STATUS_CHANGES_PERCENT", str(percent if label == "user" else 100 - percent))
    conf("taskrefiner", "PROD_TASKS_PUSH_STATUS_CHANGES_PERCENT", str(percent if label == "managed" else 100 - percent))
    add_dataset("lab.in", 1)
    made = submit(
        parameters("lab.ada.t", reads("lab.in"), vo="atlas", prodSourceLabel=label, taskType=kind, nFilesPerJob=1)
    )
    update("jedi_tasks", "jeditaskid", made, vo="atlas", tasktype=kind)
    wake()
    refiner.run()
    assert ("PC=1" in (task(made).split_rule or "").split(",")) is (percent == 100)
    command_queue.give_command(made, "kill", by="ada")
    settle()


def test_tasks_of_users_are_refined_with_what_is_configured() -> None:
    conf("taskrefiner", "USER_TASKS_MAX_CORE_COUNT", "4")
    conf("taskrefiner", "USER_TASKS_MOVE_INPUT", "100")
    add_dataset("lab.in", 1)
    made = submit(parameters("user.ada.t", reads("lab.in"), vo="atlas", nFilesPerJob=1))
    update("jedi_tasks", "jeditaskid", made, vo="atlas")
    wake()
    refiner.run()
    seen = task(made)
    assert seen.task_priority == 1001
    command_queue.give_command(made, "kill", by="ada")
    settle()


@pytest.mark.parametrize(("days", "vo"), [(14, "none"), (3, "atlas"), (3, "")])
def test_outputs_of_users_are_kept_as_long_as_is_configured(days: int, vo: str) -> None:
    conf("user_output", "OUTPUT_CONTAINER_LIFETIME", "3", vo=vo)
    made = made_task(1)
    drive(Pilot())
    assert status(made) == "done"
    update("jedi_tasks", "jeditaskid", made, vo="atlas")
    now = timezone.now()
    _set_lifetimes(task(made), "done", now)
    assert CatalogueDataset.objects.get(name="lab.t.out").expires == now + timedelta(days=days)


def test_merge_jobs_wait_while_their_vo_is_switched_off_and_run_as_long_as_is_configured() -> None:
    made = merging_task(files=2)
    settle()
    pilot = Pilot()
    first_jobs(pilot)
    conf("jobgen", "JOB_SUBMISSION", "false", vo="lab")
    conf("jobgen", "_".join(("MERGE_JOB_MAX_WALLTIME", "user")), "2")
    settle()
    merges = Job.objects.filter(task_id=made, processing_type="pmerge")
    assert not merges.exists()
    unset_value("jobgen", "JOB_SUBMISSION", vo="lab", by="ada")
    merger.run()
    assert {job.max_walltime_s for job in merges} == {7200 + (task(made).base_walltime or 0)}
    drive(pilot)
    assert status(made) == "done"


@pytest.mark.parametrize(("hours", "base", "expected"), [("3", 600, 11_400), ("48", 0, 86_400)])
def test_builds_run_as_long_as_is_configured_and_the_queue_allows(hours: str, base: int, expected: int) -> None:
    conf("jobgen", "BUILD_JOB_MAX_WALLTIME", hours)
    made = build_task(files=1, baseWalltime=base)
    settle()
    (build,) = [job for job in jobs(made) if job.prod_source_label == "panda"]
    assert build.max_walltime_s == expected
    command_queue.give_command(made, "kill", by="ada")
    drive(Pilot())


def test_a_user_has_as_many_active_tasks_as_is_configured() -> None:
    conf("dbproxy", "MAX_ACTIVE_TASKS_PER_USER_user", "2", vo="lab")
    for number in range(3):
        submit(parameters(f"lab.{number}", reads("lab.none")))
    params = submitting.check(parameters("lab.x", reads("lab.none"), waitInput=True), ADA)
    with pytest.raises(submitting.SubmissionRefusedError, match="at most 2 are allowed"):
        submitting.submit(params, by="ada")
    assert submitting.submit(params, by="ada", most_active=9).is_new
