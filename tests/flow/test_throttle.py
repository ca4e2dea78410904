"""The throttle in the job generator: what is held back, what goes on, what tasks say meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import GdpConfig, GlobalShare, ThrottleRecord, WorkQueue
from jedisite.models import Agent
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.explaining.why_task import why
from tasks_app.models import Job, Task
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, status, submit, task, wake

pytestmark = pytest.mark.usefixtures("books")
MANAGED = {"prodSourceLabel": "managed", "taskType": "prod"}
TEST = {"prodSourceLabel": "test", "taskType": "anal"}
"""What every user may submit."""
OWN_TEST = {"prodSourceLabel": "test", "taskType": "prod"}
"""What those submit who run the site."""


def configure(key: str, value: object, component: str = "prod_job_throttler", type: str = "int", **more: Any) -> None:
    GdpConfig.objects.create(app="jedi", component=component, key=key, value=str(value), type=type, **more)
    configured.forget()


@pytest.fixture(autouse=True)
def _fresh_configuration() -> Any:
    configured.forget()
    yield
    configured.forget()


def work_queue(name: str = "MC", share: int | None = 50, **more: Any) -> WorkQueue:
    return WorkQueue.objects.create(name=name, type="managed", vo="lab", share=share, **more)


def ready_task(queue: WorkQueue | None, name: str = "lab.t", number: int = 3, priority: int = 500, **more: Any) -> int:
    """A task of a work queue, whose files have been read."""
    add_dataset(f"{name}.in", number)
    values = {**MANAGED, "nFilesPerJob": 1, "taskPriority": priority, **more}
    made = submit(parameters(name, reads(f"{name}.in"), **values), priority=priority)
    for run in (refiner.run, feeder.run):
        wake()
        run()
    Task.objects.filter(pk=made).update(work_queue=queue, resource_type="SCORE", vo="lab")
    return made


def queue_users(queue: WorkQueue, count: int, status: str = "activated", priority: int = 600, **more: Any) -> None:
    """Jobs of nobody that are counted."""
    start = 90_000_000 + Job.objects.count()
    values = {
        "status": status,
        "vo": "lab",
        "prod_source_label": "managed",
        "resource_type": "SCORE",
        "work_queue_id": queue.id,
        "current_priority": priority,
        "site": "ELSEWHERE",
        **more,
    }
    Job.objects.bulk_create(Job(id=start + i, **values) for i in range(count))


def generate() -> int:
    wake()
    return job_generator.run().items


@pytest.fixture
def no_audit_of_crowds(caplog: pytest.LogCaptureFixture) -> Any:
    """The jobs of `queue_users` have no log and no task: they go before the books are looked at."""
    yield
    Job.objects.filter(id__gte=90_000_000).delete()


pytestmark = [pytest.mark.usefixtures("books"), pytest.mark.usefixtures("no_audit_of_crowds")]


def test_a_queue_with_too_many_waiting_jobs_gets_no_more_and_its_tasks_say_so() -> None:
    queue = work_queue()
    configure("NQUEUELIMIT_MC", 5)
    made = ready_task(queue)
    queue_users(queue, 6)
    assert generate() == 0
    said = task(made).error_dialog or ""
    assert said.startswith(
        "Throttled: no job runs and enough are queued: 0 jobs run and 6 jobs are queued (whole queue), the limit is 5"
    )
    record = ThrottleRecord.objects.get()
    assert (record.queue, record.code, record.passed) == (f"queue:{queue.id}", "throttled_none_running", False)
    assert record.lines[0].endswith("Only merge jobs are made.") and len(record.lines) == 5

    answer = why(task(made))
    assert answer["blocked_by"]["name"] == "throttle"
    assert answer["blocked_by"]["code"] == "throttled_none_running"
    assert answer["throttle"] == record.lines
    assert why(task(made), timezone.now() + timedelta(minutes=6))["throttle"] == [], (
        "a decision of the past says nothing"
    )

    queue_users(queue, 1)
    assert generate() == 0
    assert task(made).error_dialog == said, "the sentence is written when the wait begins, not at each pass"
    assert ThrottleRecord.objects.get().detail == record.detail

    Job.objects.filter(id__gte=90_000_000).update(status="finished")
    assert generate() == 3
    assert not task(made).error_dialog
    assert ThrottleRecord.objects.get().code == ""


def test_the_numbers_of_a_decision_are_written_anew_after_a_minute() -> None:
    queue = work_queue()
    configure("NQUEUELIMIT_MC", 5)
    ready_task(queue)
    queue_users(queue, 6)
    generate()
    ThrottleRecord.objects.update(at=timezone.now() - timedelta(minutes=2))
    queue_users(queue, 1)
    since = ThrottleRecord.objects.get().since
    generate()
    record = ThrottleRecord.objects.get()
    assert "7 jobs are queued" in record.detail
    assert record.since == since


def test_only_the_throttled_group_waits() -> None:
    full, free = work_queue(), work_queue("Reprocessing")
    outside = work_queue("Outside", share=None)
    configure("NQUEUELIMIT_MC_SCORE", 5)
    queue_users(full, 6)
    queue_users(full, 6, resource_type="MCORE")
    held = ready_task(full, "lab.a")
    others = [ready_task(free, "lab.b"), ready_task(outside, "lab.c"), ready_task(None, "lab.d")]
    of_type = ready_task(full, "lab.e")
    Task.objects.filter(pk=of_type).update(resource_type="MCORE")
    assert generate() == 12
    assert [len(jobs(each)) for each in (held, *others, of_type)] == [0, 3, 3, 3, 3]


def test_urgent_tasks_go_on_alone() -> None:
    queue = work_queue()
    configure("NQUEUELIMIT_MC", 5)
    queue_users(queue, 6, priority=700)
    usual, urgent = ready_task(queue, "lab.a", priority=500), ready_task(queue, "lab.b", priority=900)
    assert generate() == 3
    assert (len(jobs(usual)), len(jobs(urgent))) == (0, 3)
    assert (task(usual).error_dialog or "").startswith("Throttled: more urgent tasks go first: 0 jobs run")
    assert not task(urgent).error_dialog
    assert ThrottleRecord.objects.get().min_priority == 900


def test_tests_of_users_are_no_more_urgent_than_their_analysis() -> None:
    queue = work_queue()
    WorkQueue.objects.create(name="Tests", type="test", vo="lab")
    configure("NQUEUELIMIT_MC", 5)
    queue_users(queue, 6, priority=700, prod_source_label="test")
    made = ready_task(queue, "lab.a", priority=900, **TEST)
    assert generate() == 0
    assert (task(made).error_dialog or "").startswith("Throttled: ")
    own = ready_task(queue, "lab.b", priority=900, **OWN_TEST)
    assert generate() > 0
    assert len(jobs(own)) == 3


def test_with_a_small_cap_the_most_urgent_tasks_go_on_alone_and_all_say_which_setting_it_is() -> None:
    queue = work_queue()
    configure("NQUEUECAP", 2)
    queue_users(queue, 38, priority=400)
    usual, urgent, as_urgent = (
        ready_task(queue, f"lab.{name}", priority=priority) for name, priority in (("a", 400), ("b", 500), ("c", 500))
    )
    assert generate() == 1, "a fifth of the cap would be none"
    assert [len(jobs(each)) for each in (usual, urgent, as_urgent)] == [0, 1, 0]
    Agent.objects.update_or_create(
        name="job_generator",
        defaults={"period_s": 1, "last_ended_at": timezone.now(), "last_duration_s": 0, "due_at": timezone.now()},
    )
    setting = "have an administrator set prod_job_throttler.NQUEUECAP to 39 or more (it is 2)."
    helps = f"Wait until pilots have started queued jobs, or {setting}"
    found = {each: why(task(each), timezone.now() + timedelta(seconds=1))["blocked_by"] for each in (usual, as_urgent)}
    assert {each: (one["code"], one["advice"], one["who_can_fix"]) for each, one in found.items()} == {
        usual: ("throttled_priority", helps, "expert"),
        as_urgent: ("jobs_rationed", helps, "expert"),
    }
    assert "38 jobs are queued (whole queue), the cap is 2" in found[as_urgent]["sentence"]
    assert generate() == 1 and len(jobs(urgent)) == 2
    GdpConfig.objects.update(value="80")
    configured.forget()
    assert [generate() > 0, len(jobs(usual)) > 0] == [True, True]


def test_urgent_tasks_do_not_pass_the_cap_on_running_jobs() -> None:
    queue = work_queue()
    configure("NRUNNINGCAP_MC", 2)
    queue_users(queue, 3, "running")
    made = ready_task(queue, priority=900)
    assert generate() == 0
    assert "3 jobs run (whole queue), the cap is 2" in (task(made).error_dialog or "")


def test_one_pass_makes_no_more_than_the_group_may_have() -> None:
    queue = work_queue()
    configure("NQUEUECAP_MC", 20)  # a fifth of it at a time
    configure("NQUEUELIMIT_MC", 40)
    first, second = ready_task(queue, "lab.a", priority=600), ready_task(queue, "lab.b")
    alone = ready_task(None, "lab.c")
    wake()
    done = job_generator.run()
    assert [len(jobs(each)) for each in (first, second, alone)] == [3, 1, 3]
    assert not task(second).error_dialog
    assert done.items == 7
    assert generate() == 2
    assert len(jobs(second)) == 3


def test_nothing_is_made_for_an_organisation_that_is_switched_off() -> None:
    configure("JOB_SUBMISSION", "false", "jobgen", "bool", vo="lab")
    held, other = ready_task(None, "lab.a"), ready_task(None, "lab.b")
    Task.objects.filter(pk=other).update(vo="another")
    assert generate() == 3
    assert (len(jobs(held)), len(jobs(other))) == (0, 3)
    assert why(task(held))["blocked_by"]["code"] == "generation_off"
    assert task(held).error_dialog == "Throttled: job generation is switched off: JOB_SUBMISSION is false"
    GdpConfig.objects.update(value="true")
    configured.forget()
    assert generate() == 3
    assert (status(held), task(held).error_dialog) == ("running", None)


def test_resource_queues_keep_their_own_counts() -> None:
    queue = work_queue("eventservice", function="Resource")
    configure("NQUEUELIMIT_eventservice", 5)
    queue_users(queue, 6, resource_type="MCORE")
    made = ready_task(queue)
    assert generate() == 0, "all its resource types count together"
    assert len(jobs(made)) == 0


def test_shares_go_before_work_queues_and_some_are_never_throttled() -> None:
    queue = work_queue("Some")
    top = GlobalShare.objects.create(name="Production", value=1)
    for name, throttled in (("MC", "Y"), ("Express", "N")):
        GlobalShare.objects.create(name=name, value=1, parent=top, throttled=throttled)
    configure("NQUEUELIMIT_MC", 5)
    configure("NQUEUELIMIT_Express", 5)
    for share in ("MC", "Express"):
        queue_users(queue, 6, gshare=share)
    made = {share: ready_task(queue, f"lab.{share}") for share in ("MC", "Express", "Production")}
    for share, task_id in made.items():
        Task.objects.filter(pk=task_id).update(gshare=share)
    assert generate() == 6
    assert {share: len(jobs(task_id)) for share, task_id in made.items()} == {"MC": 0, "Express": 3, "Production": 3}
    assert sorted(ThrottleRecord.objects.values_list("queue", "code")) == [
        (f"queue:{queue.id}", ""),
        ("share:MC", "throttled_none_running"),
    ]


def test_slots_that_stand_by_count_as_running() -> None:
    add_queue("RESERVE", status="standby", catchall="some=1,nStandby=MC:SCORE:4")
    queue = work_queue()
    configure("NRUNNINGCAP_MC", 3)
    made = ready_task(queue)
    assert generate() == 0
    assert "4 jobs run (whole queue), the cap is 3" in (task(made).error_dialog or "")


def test_an_installation_without_shares_counts_nothing(django_assert_max_num_queries: Any) -> None:
    from tasks_app.generation import throttle

    ready_task(work_queue(share=None))
    configured.configuration()
    with django_assert_max_num_queries(2):
        found = throttle.decide(timezone.now(), "TRUE")
    assert found.condition() == ("TRUE", {})
    assert not ThrottleRecord.objects.exists()


def test_jobs_of_users_with_many_jobs_come_later() -> None:
    made = ready_task(None, number=7, prodSourceLabel="user", taskType="anal")
    assert generate() == 7
    assert [job.current_priority for job in jobs(made)] == [500, 499, 499, 499, 499, 499, 498]
    assert {job.assigned_priority for job in jobs(made)} == {500}
    again = ready_task(None, "lab.u", number=1, prodSourceLabel="user", taskType="anal")
    assert generate() == 1
    assert [job.current_priority for job in jobs(again)] == [498]  # 7 jobs: int(500 − 1.4)


def test_tests_of_users_come_later_as_their_analysis_does_and_those_of_the_site_do_not() -> None:
    own = ready_task(None, "lab.own", number=6, **OWN_TEST)
    assert generate() == 6
    assert {job.current_priority for job in jobs(own)} == {500}
    made = ready_task(None, number=7, **TEST)
    assert generate() == 7
    assert [job.current_priority for job in jobs(made)] == [500, 499, 499, 499, 499, 499, 498]
    again = ready_task(None, "lab.u", number=1, prodSourceLabel="user", taskType="anal")
    assert generate() == 1
    assert [job.current_priority for job in jobs(again)] == [498], "the tests count"


def test_jobs_of_boosted_users_have_a_fixed_offset() -> None:
    boosts = [{"name": "ada", "type": "user", "prio": 200, "expire": None}]
    GdpConfig.objects.create(
        app="pandaserver", component="dbproxy", key="USER_JOB_PRIO_BOOST_DICTS", type="json", value_json=boosts
    )
    configured.forget()
    made = ready_task(None, number=7, prodSourceLabel="user", taskType="anal")
    assert generate() == 7
    assert {job.current_priority for job in jobs(made)} == {700}
