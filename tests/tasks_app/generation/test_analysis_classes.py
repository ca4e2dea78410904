"""The watchdog that classifies queues, users and tasks, on real rows; and what the broker is told of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.cases.analysis_settings import Ended
from brokerage_app.grid import configured
from brokerage_app.grid.configured import configuration
from brokerage_app.models import AnalysisUser, GdpConfig, GlobalShare, Queue, SiteClassRecord, TaskClassRecord
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.userthrottle import Quota, ShareState, UserUsage
from tasks_app.agents.watchdogs import classes
from tasks_app.generation.analysis_facts import AnalysisUsers
from tasks_app.models import CatalogueDataset, CatalogueFile, Command, Dataset, Job, JobStatusLog, Task, TaskStatusLog

USERS, EXPRESS = "User Analysis", "Express Analysis"
Make = Callable[..., Any]
HOUR = timedelta(hours=1)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def waited(make_job: Make, now: datetime) -> Make:
    """A merge job that started `ago` and had waited `wait` seconds before."""

    def make(site: str, wait: float, ago: timedelta = HOUR, **more: Any) -> Job:
        started = now - ago
        job = make_job(
            **{
                "site": site,
                "status": "finished",
                "start_time": started,
                "gshare": USERS,
                "processing_type": "pmerge",
                "prod_source_label": "user",
                **more,
            }
        )
        JobStatusLog.objects.create(
            job_id=job.id, status="activated", at=started - timedelta(seconds=wait), site=site, by="t"
        )
        return job

    return make


def site_classes() -> dict[str, int]:
    return dict(SiteClassRecord.objects.values_list("queue", "site_class"))


def test_queues_are_classified_by_the_waits_of_merge_jobs(waited: Make) -> None:
    for wait in (100, 200, 300):
        waited("FAST", wait)
        waited("SLOW", 100 * wait)
        waited("NORMAL", 30 * wait)
        waited("OTHER_WORK", wait, processing_type="prun")
    waited("ONCE", 100)
    classes.run()
    assert site_classes() == {"FAST": 1, "NORMAL": 0, "SLOW": -1}
    fast = SiteClassRecord.objects.get(queue="FAST")
    assert (fast.mean_s, fast.upper_s) == (pytest.approx(200, rel=1e-3), pytest.approx(473.44, rel=1e-3))
    assert (fast.long_queued, fast.active) == (0, True)


def test_later_jobs_count_more(waited: Make) -> None:
    for _ in range(4):
        waited("A", 100, timedelta(minutes=1))
        waited("A", 1000, timedelta(hours=12, minutes=1))
    classes.run()
    assert SiteClassRecord.objects.get(queue="A").mean_s == pytest.approx((4 * 100 + 1 * 1000) / 5, rel=0.01)


def test_jobs_that_wait_long_now_make_a_queue_slower(waited: Make, make_job: Make, now: datetime) -> None:
    for wait in (100, 200, 300):
        waited("A", wait)
    merge = {"site": "A", "gshare": USERS, "processing_type": "pmerge"}
    for ago in (100, 250, 300, 350):
        make_job(**merge, status="activated", creation_time=now - timedelta(seconds=ago))
    make_job(**merge, status="starting", creation_time=now - timedelta(seconds=9000))
    classes.run()
    row = SiteClassRecord.objects.get(queue="A")
    assert (row.long_queued, row.site_class) == (3, 0)
    assert row.long_mean_s == pytest.approx(300, abs=5)
    Queue.objects.create(name="A", site_name="A", workflow="push")
    classes.run()
    assert SiteClassRecord.objects.get(queue="A").long_queued == 4


def test_a_queue_that_starts_nothing_any_more_is_not_hi(waited: Make) -> None:
    for wait in (100, 200, 300):
        for _ in range(20):
            waited("A", wait, timedelta(hours=25))
    classes.run()
    assert site_classes() == {"A": 0}


def test_what_is_not_known_any_more_is_forgotten(waited: Make, db: None) -> None:
    SiteClassRecord.objects.create(
        queue="OLD",
        site_class=1,
        mean_s=1,
        upper_s=1,
        long_queued=0,
        long_mean_s=0,
        active=True,
        updated=timezone.now() - HOUR,
    )
    classes.run()
    assert site_classes() == {}


def running(make_job: Make, user: str, site: str, cores: int, **more: Any) -> Job:
    job: Job = make_job(
        user=user, site=site, core_count=cores, **{"gshare": USERS, "prod_source_label": "user", **more}
    )
    return job


def test_users_have_slots_on_hi_and_mid_queues_of_grids(waited: Make, make_job: Make, make_task: Make) -> None:
    for wait in (100, 200, 300):
        waited("FAST", wait)
        waited("CLOUD", wait)
        waited("SLOW", 100 * wait)
    Queue.objects.create(name="CLOUD", site_name="C", grid_type="cloud")
    running(make_job, "ada", "FAST", 8)
    running(make_job, "ada", "FAST", 4, gshare=EXPRESS)
    running(make_job, "ada", "CLOUD", 16)
    running(make_job, "ada", "SLOW", 32)
    running(make_job, "ada", "UNKNOWN", 1)
    running(make_job, "ada", "FAST", 64, gshare="Production")
    make_task(user="eve", gshare=USERS)
    classes.run()
    assert list(AnalysisUser.objects.order_by("user").values_list("user", "slots_hi", "slots_mid")) == [
        ("ada", 12, 1),
        ("eve", 0, 0),
    ]


def configure(component: str, key: str, value: str, type: str = "int", app: str = "pandaserver") -> None:
    GdpConfig.objects.create(app=app, component=component, key=key, value=value, type=type)
    configured.forget()


def test_tasks_have_the_class_of_their_user(waited: Make, make_job: Make, make_task: Make) -> None:
    configure("analy_eval", "USER_USAGE_THRESHOLD_A", "10")
    configure("analy_eval", "USER_USAGE_THRESHOLD_B", "20")
    for wait in (100, 200, 300):
        waited("FAST", wait)
    for user, cores in (("ada", 10), ("bob", 20), ("cleo", 21)):
        running(make_job, user, "FAST", cores)
    tasks = {user: make_task(user=user, gshare=USERS) for user in ("ada", "bob", "cleo", "dan")}
    express = make_task(user="cleo", gshare=EXPRESS)
    make_task(user="ada", gshare=USERS, status="done")
    make_task(user="ada", gshare="Production")
    classes.run()
    found = dict(TaskClassRecord.objects.values_list("task_id", "task_class"))
    assert found == {
        tasks["ada"].id: TaskClass.A,
        tasks["bob"].id: TaskClass.B,
        tasks["cleo"].id: TaskClass.C,
        tasks["dan"].id: TaskClass.A,
        express.id: TaskClass.S,
    }


@pytest.fixture
def nearly_done(make_task: Make, make_dataset: Make, make_job: Make) -> Make:
    """A task of 100 files with so many done; ten jobs had them, one of which is still at work."""

    def make(done: int, jobs: int = 10, **more: Any) -> Task:
        task: Task = make_task(**{"gshare": USERS, "split_rule": "", **more})
        Dataset.objects.filter(pk=make_dataset(task).pk).update(
            files=100, files_to_be_used=100, files_used=100, files_finished=done
        )
        for number in range(jobs):
            make_job(task_id=task.id, status="activated" if number == 0 else "finished", gshare=USERS)
        return task

    return make


def test_tasks_that_are_nearly_done_go_to_express(nearly_done: Make) -> None:
    for name in (USERS, EXPRESS):
        GlobalShare.objects.create(name=name, value=50)
    done, busy = nearly_done(90), nearly_done(89)
    sized = nearly_done(95, split_rule="NF=3")
    assert classes.run().items == 2
    for task in (done, busy, sized):
        task.refresh_from_db()
    assert (done.gshare, busy.gshare, sized.gshare) == (EXPRESS, USERS, EXPRESS)
    assert (done.split_rule, sized.split_rule) == ("MW=1", "NF=3")
    assert Job.objects.get(task_id=done.id, status="activated").gshare == EXPRESS
    assert TaskStatusLog.objects.filter(task_id=done.id, reason__contains="class S").exists()
    assert classes.run().items == 0
    assert TaskClassRecord.objects.get(task_id=done.id).task_class == TaskClass.S


def test_a_task_stays_where_there_is_no_express_share(nearly_done: Make) -> None:
    task = nearly_done(95)
    assert classes.run().items == 0
    task.refresh_from_db()
    assert task.gshare == USERS
    assert TaskClassRecord.objects.get(task_id=task.id).task_class == TaskClass.S


def test_datasets_that_grow_and_tasks_with_nothing_left_are_not_nearly_done(nearly_done: Make) -> None:
    grows, over = nearly_done(95), nearly_done(100)
    Dataset.objects.filter(task=grows).update(state="mutable")
    Job.objects.filter(task_id=over.id).update(status="finished")
    classes.run()
    assert set(TaskClassRecord.objects.values_list("task_class", flat=True)) == {int(TaskClass.A)}


# --- what the broker is told ---


def told(task: Task) -> Any:
    return AnalysisUsers(configuration(), timezone.now()).facts(task)


def test_jobs_are_counted_for_the_user_or_for_the_group(make_job: Make, make_task: Make) -> None:
    configure("prio_mgr", "CAP_RUNNING_USER_JOBS", "100")
    configure("prio_mgr", "CAP_RUNNING_GROUP_CORES", "100")
    user = {"prod_source_label": "user"}
    make_job(user="ada", core_count=8, **user)
    make_job(user="ada", status="activated", core_count=2, **user)
    make_job(user="ada", status="throttled", **user)
    make_job(user="ada", status="finished", **user)
    make_job(user="ada", prod_source_label="managed")
    for kind in ("anal", "prod"):  # tests of the type prod are those of the site itself
        test = make_task(prod_source_label="test", task_type=kind, user="ada")
        make_job(user="ada", prod_source_label="test", task_id=test.id, core_count=3)
    make_job(user="ada", working_group="higgs", core_count=4, **user)
    own, group = told(make_task(user="ada")), told(make_task(user="bob", working_group="higgs"))
    assert (own.usage, own.is_group, own.who) == (UserUsage(2, 2, 11, 3), False, "the user ada")
    assert (group.usage, group.is_group, group.who) == (UserUsage(1, 0, 4, 0), True, "the group higgs")


def test_without_caps_nobody_counts(make_job: Make, make_task: Make) -> None:
    make_job(user="ada", prod_source_label="user")
    assert told(make_task(user="ada")).usage == UserUsage()


def test_jobs_that_the_pass_makes_are_counted(make_job: Make, make_task: Make) -> None:
    configure("prio_mgr", "CAP_RUNNING_USER_JOBS", "100")
    task = make_task(user="ada")
    queue_users = AnalysisUsers(configuration(), timezone.now())
    queue_users.made(task, 5, 10)
    make_job(user="ada", status="activated", prod_source_label="user")
    assert queue_users.facts(task).usage == UserUsage(0, 6, 0, 11)
    assert queue_users.facts(make_task(user="bob")).usage == UserUsage()


def test_ended_jobs_of_the_task_in_the_window(make_job: Make, make_task: Make, now: datetime) -> None:
    task = make_task()
    new = {"task_id": task.id, "state_change_time": now - HOUR}
    make_job(**new, status="finished")
    make_job(**new, status="failed", pilot_error_code=1305)
    make_job(**new, status="failed")
    make_job(**new, status="failed", pilot_error_code=1201)  # the site ended it
    make_job(**new, status="closed", sub_status="toreassign", site="B")
    make_job(**new, status="closed", site="B")
    make_job(task_id=task.id, status="finished", state_change_time=now - 7 * HOUR)
    assert told(task).ended == {"SITE_A": Ended(1, 1, 0), "B": Ended(0, 0, 1)}


def test_the_window_in_which_ended_jobs_count_is_configured(make_job: Make, make_task: Make, now: datetime) -> None:
    task = make_task()
    make_job(task_id=task.id, status="finished", state_change_time=now - 7 * HOUR)
    assert told(task).ended == {}
    configure("anal_jobbroker", "TW_DONE_JOB_STAT", "8", app="jedi")
    assert told(task).ended == {"SITE_A": Ended(1, 0, 0)}


def test_failures_of_before_the_task_was_tried_again_count_no_more(
    make_job: Make, make_task: Make, now: datetime
) -> None:
    task, other = make_task(), make_task()
    before, after = now - timedelta(hours=2), now - timedelta(minutes=30)
    for made in (before, before, after):
        make_job(task_id=task.id, status="failed", pilot_error_code=1305, creation_time=made, state_change_time=now)
        make_job(task_id=other.id, status="failed", pilot_error_code=1305, creation_time=made, state_change_time=now)
    Command.objects.create(task=task, name="incexec", owner="ada", status="refused", ended=now)
    Command.objects.create(task=task, name="pause", owner="ada", status="done", ended=now)
    assert told(task).ended["SITE_A"].failed == 3
    Command.objects.create(task=task, name="retry", owner="ada", status="done", ended=now - timedelta(hours=1))
    assert (told(task).ended["SITE_A"].failed, told(other).ended["SITE_A"].failed) == (1, 3)


def test_classes_are_told_while_they_are_valid(make_task: Make, now: datetime) -> None:
    task = make_task(gshare=USERS)
    TaskClassRecord.objects.create(task_id=task.id, task_class=-1, updated=now - timedelta(minutes=14))
    SiteClassRecord.objects.create(
        queue="A",
        site_class=-1,
        mean_s=1,
        upper_s=1,
        long_queued=0,
        long_mean_s=0,
        active=True,
        updated=now - timedelta(minutes=59),
    )
    facts = told(task)
    assert (facts.task_class, facts.site_classes) == (TaskClass.C, {"A": SiteClass.LO})
    TaskClassRecord.objects.update(updated=now - timedelta(minutes=15))
    SiteClassRecord.objects.update(updated=now - HOUR)
    facts = told(task)
    assert (facts.task_class, facts.site_classes) == (None, {})


def test_the_usage_of_the_share(make_job: Make, make_task: Make, now: datetime) -> None:
    task = make_task(user="ada", gshare=USERS)
    assert told(task).share == ShareState()
    for name, value in (("Production", 80), (USERS, 20)):
        GlobalShare.objects.create(name=name, value=value)
    assert told(task).share == ShareState(0.0, 0.0, None)
    AnalysisUser.objects.create(user="ada", slots_hi=7, slots_mid=0, updated=now)
    make_job(gshare="Production", core_count=6)
    make_job(gshare=USERS, core_count=4)
    # Production does not use all of its 8 of 10, so that its rest goes to the users' target.
    state = told(task).share
    assert (state.percent, state.slots_hi) == (pytest.approx(200), 7)
    assert state.level1 is not None and 100 < state.level1 < 200
    assert told(make_task(gshare="Production")).share == ShareState()


def test_the_quota_of_the_user(make_task: Make) -> None:
    task = make_task(user="ada", gshare=USERS)
    dataset = CatalogueDataset.objects.create(name="user.ada.data", scope="user.ada")
    CatalogueFile.objects.create(
        dataset=dataset, lfn="f", scope="user.ada", guid="1", size=3 * 1024**3, adler32="0", endpoint="SE", url=""
    )
    assert told(task).quotas == ()
    configure("anal_jobbroker", "USER_DISK_QUOTA", "2", "float", "jedi")
    assert told(task).quotas[0].problem
    classes.run()
    assert told(task).quotas == (Quota(3.0, 2.0),)
