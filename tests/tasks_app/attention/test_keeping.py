"""What needs somebody is found in the tables, kept, taken on by people, and gone with its cause."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import (
    GdpConfig,
    GlobalShare,
    JobCount,
    PilotCalls,
    Queue,
    QueueActivity,
    QueueEndpoint,
    Sample,
    StorageEndpoint,
)
from jedisite.agents import agent_orders
from jedisite.models import Agent, AuditEntry
from tasks_app.agents import attention
from tasks_app.agents.watchdogs import site_statistics
from tasks_app.attention import bell, keeping, reading
from tasks_app.attention.rules.findings import Found
from tasks_app.counts import statistics
from tasks_app.models import AttentionItem, Dataset, Job, JobStatusLog, Task
from tests.statements import sent

pytestmark = pytest.mark.django_db
NOW = timezone.now()
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def one(sentence: str = "x", **more: Any) -> Found:
    return Found(**{"kind": "asks", "key": "1", "sentence": sentence, "path": "/tasks/1/", "size": 3, **more})


def the_item() -> AttentionItem:
    return AttentionItem.objects.get()


def test_an_item_lives_as_long_as_its_cause(django_assert_num_queries: Any) -> None:
    Agent.objects.all().delete()
    assert keeping.keep(["asks"], [one(), one("twice", size=1)], NOW) == 1
    assert (the_item().since, the_item().sentence, the_item().gone_at) == (NOW, "x", None)
    keeping.acknowledge(the_item().id, by="grace", reason="I ask ada")
    keeping.keep(["asks"], [one("y")], NOW + MINUTE)
    keeping.keep(["share"], [], NOW + MINUTE)
    assert (the_item().sentence, the_item().since, the_item().acknowledged_by) == ("y", NOW, "grace")
    with django_assert_num_queries(3):  # a savepoint around one statement
        keeping.keep(["asks"], [], NOW + 2 * MINUTE)
    assert the_item().gone_at == NOW + 2 * MINUTE
    keeping.keep(["asks"], [one()], NOW + 5 * MINUTE)
    assert the_item().gone_at is None and the_item().acknowledged_by == "grace", "it only flickered"
    keeping.keep(["asks"], [], NOW + 6 * MINUTE)
    with pytest.raises(keeping.AttentionError, match="over since"):
        keeping.acknowledge(the_item().id, by="grace", reason="late")
    keeping.keep(["asks"], [one()], NOW + 30 * MINUTE)
    assert (the_item().since, the_item().acknowledged_by, the_item().note) == (NOW + 30 * MINUTE, "", ""), "it is new"
    entry = AuditEntry.objects.get(object_type="attention")
    assert (entry.actor, entry.action, entry.reason) == ("grace", "attention.acknowledge", "I ask ada")
    assert entry.details is not None and entry.details["item"] == "asks:1"


def test_one_job_is_no_jobs() -> None:
    said = [AttentionItem(size=size, unit=unit).unit_said for size, unit in ((1, "failed jobs"), (2, "jobs"), (1, "h"))]
    assert said == ["failed job", "jobs", "h"]


def test_a_grid_that_is_closed_in_two_steps_is_not_forgotten(make_task: Callable[..., Task]) -> None:
    Agent.objects.all().delete()
    for name in ("A", "B"):
        Queue.objects.create(name=name, site_name=name)
    JobCount.objects.create(
        site="A", status="activated", share="User", resource_type="", label="", work_queue_id=0, jobs=40, cores=40
    )
    make_task(status="pending", state_change_time=NOW - HOUR)
    make_task(status="paused", state_change_time=NOW - HOUR)
    make_task(status="ready", creation_date=NOW - 9 * HOUR, state_change_time=timezone.now())
    for status in ("paused", "offline"):
        for queue in Queue.objects.all():
            queue.status, queue.status_reason = status, "night"
            queue.save()
        attention.run(timezone.now())
        found = {item.key: item.sentence for item in AttentionItem.objects.filter(gone_at=None)}
        assert found == {
            "all_closed:grid": f"No queue takes jobs: 2 are {status}; 40 jobs are queued; 1 task waits for jobs.",
            "offline:A": f"A went from online to {status}; night; 40 open jobs affected, 40 of them queued, "
            "which pilots cannot get.",
            "offline:B": f"B went from online to {status}; night.",
        }
    attention.run(timezone.now() + timedelta(days=2))
    left = AttentionItem.objects.filter(gone_at=None).exclude(kind="asks").values_list("key", flat=True)
    assert set(left) == {"all_closed:grid", "offline:A"}, "what is queued there still waits"


@pytest.mark.parametrize("running", [0, 2])
def test_a_task_that_waits_while_nothing_runs_is_found(running: int, make_task: Callable[..., Task]) -> None:
    Agent.objects.all().delete()
    make_task(status="pending", frozen_time=NOW - HOUR, state_change_time=NOW - MINUTE)
    for minutes, jobs in ((90, 3), (5, 0)):
        Sample.objects.create(at=NOW - minutes * MINUTE, running_jobs=jobs, queued_jobs=0)
    if running:
        JobCount.objects.create(
            site="A", status="running", share="User", resource_type="", label="", work_queue_id=0, jobs=2, cores=2
        )
    attention.run(NOW)
    found = [(item.sentence, item.since) for item in AttentionItem.objects.all()]
    said = ("No job has run for 1 h, although 1 task waits for jobs.", NOW - HOUR)
    assert found == ([] if running else [said])


def test_a_task_that_waits_for_input_or_was_tried_again_just_now_waits_for_no_job(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    Agent.objects.all().delete()
    old = NOW - 9 * HOUR
    Sample.objects.create(at=NOW - 10 * HOUR, running_jobs=3, queued_jobs=0)
    make_task(status="running", creation_date=NOW - 99 * HOUR, state_change_time=NOW - 3 * MINUTE)
    for state in ("registered", "defined"):
        make_task(status="pending", old_status=state, state_change_time=old)
    grows = make_task(status="running", state_change_time=old)
    files = {"state": "mutable", "files": 8, "files_to_be_used": 5, "modification_time": old}
    growing = make_dataset(grows, files_used=5, **files)
    attention.run(NOW)
    attention.run_slow(NOW)
    assert [item.sentence for item in AttentionItem.objects.all()] == []
    Dataset.objects.filter(pk=growing.pk).update(files_used=4)
    attention.run(NOW)
    attention.run_slow(NOW)
    assert [item.sentence for item in AttentionItem.objects.order_by("kind")] == [
        "No job has run for 9 h, although 1 task waits for jobs.",
        f"Task {grows.id} {grows.name} (running): no new job and no progress for 9 h.",
    ]


def test_the_grid_is_read_once_for_all_rules_of_a_pass() -> None:
    JobCount.objects.create(
        site="A", status="activated", share="User", resource_type="", label="", work_queue_id=0, jobs=9, cores=9
    )
    Sample.objects.create(at=NOW - 2 * HOUR, running_jobs=1, queued_jobs=9)
    with sent() as statements:
        attention.run(NOW)
    assert AttentionItem.objects.filter(kind__in=("nothing_runs", "no_calls")).count() == 2
    assert len([one for one in statements if "FROM sitedata WHERE hour" in one]) == 1


@pytest.mark.parametrize("called_hours_ago", [None, 0, 30])
def test_a_grid_on_which_nothing_runs_is_found(called_hours_ago: int | None) -> None:
    Agent.objects.all().delete()
    for site, status, jobs in (("A", "activated", 40), ("B", "defined", 30), ("B", "transferring", 99)):
        JobCount.objects.create(
            site=site, status=status, share="User", resource_type="", label="", work_queue_id=0, jobs=jobs, cores=jobs
        )
    for minutes, running, queued in ((200, 0, 5), (95, 2, 5), (90, 0, 70), (5, 0, 70)):
        Sample.objects.create(at=NOW - minutes * MINUTE, running_jobs=running, queued_jobs=queued)
    Sample.objects.create(at=NOW, site="A", running_jobs=7, queued_jobs=0)
    if called_hours_ago is not None:
        PilotCalls.objects.create(site="A", hour=NOW - called_hours_ago * HOUR, get_job=1)
    attention.run(NOW)
    found = {item.kind: (item.sentence, item.since) for item in AttentionItem.objects.all()}
    idle = ("No job has run for 2 h, although 70 jobs are queued; 40 jobs wait for a pilot.", NOW - 95 * MINUTE)
    silent = ("No pilot has asked for a job for more than 1 h; 40 jobs wait.", NOW - 95 * MINUTE)
    assert found == {"nothing_runs": idle} | ({} if called_hours_ago == 0 else {"no_calls": silent})


def test_a_job_that_ran_between_two_samples_has_run(make_job: Callable[..., Job]) -> None:
    JobCount.objects.create(
        site="A", status="activated", share="User", resource_type="", label="", work_queue_id=0, jobs=9, cores=9
    )
    for minutes in (60, 14, 4):
        Sample.objects.create(at=NOW - minutes * MINUTE, running_jobs=int(minutes == 60), queued_jobs=9)
    assert reading.grid(NOW).idle_since == NOW - 60 * MINUTE
    begun = NOW - 9 * MINUTE
    ran = make_job(status="finished", start_time=begun, end_time=NOW - 6 * MINUTE)
    never = make_job(status="cancelled")
    for job, minutes, status in ((ran, 9, "running"), (ran, 4, "finished"), (never, 2, "cancelled")):
        JobStatusLog.objects.create(job_id=job.id, status=status, at=NOW - minutes * MINUTE)
    assert reading.grid(NOW).idle_since == NOW - 6 * MINUTE, "when it ended, not when that was booked"
    Job.objects.filter(id=ran.id).update(end_time=None)
    assert reading.grid(NOW).idle_since == NOW - 4 * MINUTE


def test_agents_find_what_is_wrong_in_the_tables(
    make_task: Callable[..., Task], make_job: Callable[..., Job], make_dataset: Callable[..., Dataset]
) -> None:
    Agent.objects.all().delete()
    Agent.objects.create(name="feeder", period_s=5, due_at=NOW - HOUR)
    old = NOW - 9 * HOUR
    stuck = make_task(status="running", state_change_time=old, error_dialog="no site")
    make_dataset(stuck, type="input", modification_time=old)
    make_job(task_id=stuck.id, status="activated", site="SITE_A")
    for sign_of_life in ("a job runs", "files were booked", "just began"):
        well = make_task(status="running", state_change_time=NOW if sign_of_life == "just began" else old)
        make_dataset(well, type="input", modification_time=NOW if sign_of_life == "files were booked" else old)
        if sign_of_life == "a job runs":
            make_job(task_id=well.id, status="running")
    make_task(status="exhausted", state_change_time=old)
    lost = make_task(status="ready", state_change_time=NOW)
    make_dataset(lost, type="input", files_missing=4)
    Queue.objects.create(name="SITE_A", site_name="A")
    Queue.objects.create(name="OUT", site_name="A")
    Queue.objects.filter(name="OUT").update(status="offline", status_reason="no power")
    QueueActivity.objects.create(site="SITE_A", pilots_3h=0)
    JobCount.objects.create(
        site="SITE_A", share="", work_queue_id=0, resource_type="", label="", status="activated", jobs=5, cores=5
    )
    root = GlobalShare.objects.create(name="ATLAS", value=100)
    for name, running in (("Production", 900.0), ("User", 10.0)):
        GlobalShare.objects.create(name=name, value=50, parent=root)
        for number in range(12):
            Sample.objects.create(at=NOW - number * 5 * MINUTE, share=name, running_hs=running, queued_hs=5000.0)
    Sample.objects.create(at=NOW - MINUTE, site="SITE_A", finished=10, failed=90, wasted_core_s=36_000)
    Sample.objects.create(at=NOW - timedelta(days=7, minutes=5), site="SITE_A", finished=95, failed=5)
    attention.run(now=NOW)
    attention.run_slow(now=NOW)
    found = {item.kind: item.sentence for item in AttentionItem.objects.all()}
    assert len(found) == AttentionItem.objects.count()
    assert found == {
        "late_agent": "Agent feeder is overdue by 1 h.",
        "asks": found["asks"],
        "offline": "OUT went from online to offline; no power.",
        "stuck_task": f"Task {stuck.id} {stuck.name} (running): no new job and no progress for 9 h; "
        "1 job waits for a pilot; no site.",
        "data": f"Task {lost.id} {lost.name}: 4 input files are missing.",
        "no_pilots": "5 jobs wait at SITE_A, and no pilot has called for 3 hours; no batch job is on its way.",
        "failures": "At SITE_A 90 % of 100 jobs failed in the last hour; usually 5 % (same hour last week); "
        "10 core hours were lost.",
        "share": "User had 2 % of its target over the last day (10 of 455 HS23); jobs of 5000 HS23 wait.",
    }
    assert "has waited for a decision for 9 h" in found["asks"]


@pytest.fixture
def shifter(client: Client) -> Client:
    user = User.objects.create_user("grace", password="compiler-of-1952")
    user.groups.add(Group.objects.get_or_create(name="shift")[0])
    client.force_login(user)
    return client


def test_shifters_act_on_the_page_and_by_the_api(
    shifter: Client, api: Callable[..., Client], django_assert_max_num_queries: Any
) -> None:
    Agent.objects.update(due_at=timezone.now(), last_ended_at=timezone.now())
    empty = shifter.get("/attention/").content.decode()
    assert "Nothing needs attention." in empty and "No items need attention" in empty
    found = [one(f"<b>{n}</b>", key=str(n), owner="ada" if n else "bob") for n in range(30)]
    keeping.keep(["asks"], found, timezone.now())
    bell.forget()
    with django_assert_max_num_queries(12):
        text = shifter.get("/attention/").content.decode()
    assert "&lt;b&gt;7&lt;/b&gt;" in text and "30 items need attention" in text
    first = AttentionItem.objects.get(owner="bob")
    path = f"/attention/{first.id}/"

    def said(**form: str) -> str:
        return shifter.post(path, {"next": "/attention/?state=all", **form}, follow=True).content.decode()

    assert "reason: Give a reason" in said(action="acknowledge", reason=" ")
    assert "Acknowledged" in said(action="acknowledge", reason="I ask <bob>") and "I ask &lt;bob&gt;" in said(
        action="x"
    )
    assert "29 items need attention" in shifter.get("/attention/?state=acknowledged").content.decode()
    assert "hours: Choose one of" in said(action="snooze", reason="later", hours="3")
    assert "until: The end of a snooze must be in the future" in said(
        action="snooze", reason="later", until="2020-01-01T00:00"
    )
    assert "until: Enter a time" in said(action="snooze", reason="later", until="soon")
    assert "Snoozed until" in said(action="snooze", reason="later", hours="8")
    assert "Ticket linked" in said(action="ticket", reason="r", ticket="https://tickets.example/1")
    assert 'href="https://tickets.example/1"' in shifter.get("/attention/?state=snoozed&owner=bob").content.decode()
    assert "Reopened." in said(action="reopen", reason="wrong one")
    assert shifter.post(path, {"action": "x", "next": "https://elsewhere.example/"})["Location"] == "/attention/"
    assert "No item matches" in shifter.get("/attention/?state=gone").content.decode()
    assert AuditEntry.objects.filter(object_type="attention", object_id=str(first.id)).count() == 4
    assert [row["key"] for row in api().get("/api/v2/attention/?state=open&owner=bob").json()["results"]] == ["asks:0"]

    AttentionItem.objects.filter(pk=first.id).update(gone_at=NOW)
    client = api("shifter")
    for body, status, field in (
        ({"action": "snooze", "reason": "x"}, 422, "until"),
        ({"action": "sleep", "reason": "x"}, 422, "action"),
        ({"action": "ticket", "reason": "x", "ticket": "#1"}, 409, None),
    ):
        answer = client.post(f"/api/v2/attention/{first.id}/", body, content_type="application/json")
        assert answer.status_code == status, answer.content
        assert field is None or [e["field"] for e in answer.json()["errors"]] == [field]


def test_jobs_at_a_queue_that_no_pilot_has_ever_asked_are_told_of_within_minutes(
    make_task: Callable[..., Any], make_job: Callable[..., Any]
) -> None:
    """Also while nobody has counted pilots for three hours, as on a site that was just set up."""
    for name in ("UNKNOWN", "KNOWN", "STARTED"):
        Queue.objects.create(name=name, site_name="A")
        make_job(task_id=make_task().id, status="activated", site=name, state_change_time=NOW - 6 * MINUTE)
        make_job(task_id=make_task().id, status="activated", site=name, state_change_time=NOW)
    PilotCalls.objects.create(site="KNOWN", hour=NOW - timedelta(days=1), get_job=1)
    QueueActivity.objects.create(site="STARTED", last_start=NOW - timedelta(days=9))
    statistics.refresh()
    found = {fact.name: fact.uncalled_since for fact in reading.sites_with_work()}
    assert found == {"UNKNOWN": NOW - 6 * MINUTE, "KNOWN": None, "STARTED": None}
    attention.run(now=NOW)
    (item,) = AttentionItem.objects.filter(kind="no_pilots")
    assert (item.owner, item.since) == ("UNKNOWN", NOW - 6 * MINUTE)
    assert (
        item.sentence
        == "2 jobs wait at UNKNOWN, and no pilot has ever asked for jobs there; no batch job is on its way."
    )


def test_an_agent_that_somebody_paused_is_told_of_at_once(
    make_task: Callable[..., Any], client: Client, make_user: Callable[..., User]
) -> None:
    """Also one that was paused in the admin, by its last pause, and no more when it goes on."""
    Agent.objects.all().delete()
    for name in ("refiner", "feeder", "adder"):
        Agent.objects.create(name=name, period_s=5, due_at=NOW)
    for status in ("registered", "rerefine", "running"):
        make_task(status=status)
    agent_orders.set_paused(Agent.objects.get(pk="refiner"), True, by="grace", reason="Rucio is down.")
    client.force_login(make_user("root", "administrator"))
    form = {"period_s": 5, "paused": "on", "_why": "no disk", "_save": "Save"}
    assert client.post("/admin/jedisite/agent/adder/change/", form).status_code == 302
    attention.run(now=NOW)
    at = f"{timezone.now():%Y-%m-%d}"
    found = {item.key.partition(":")[2]: item for item in AttentionItem.objects.filter(kind="paused_agent")}
    assert set(found) == {"refiner", "adder"}
    assert found["refiner"].sentence.startswith(f"Agent refiner is paused by grace since {at}")
    assert found["refiner"].sentence.endswith("(“Rucio is down”); 2 open tasks are in states that it handles.")
    assert found["refiner"].path == "/agents/refiner/" and client.get("/agents/refiner/").status_code == 200
    assert found["refiner"].since == AuditEntry.objects.get(object_id="refiner").at
    assert found["adder"].sentence.startswith(f"Agent adder is paused by root since {at}")
    assert "(“no disk”)" in found["adder"].sentence
    agent_orders.set_paused(Agent.objects.get(pk="refiner"), False, by="grace", reason="it is back")
    attention.run(now=NOW + MINUTE)
    assert [item.key for item in AttentionItem.objects.filter(kind="paused_agent", gone_at=None)] == [
        "paused_agent:adder"
    ]


@pytest.mark.parametrize("ago", [30 * MINUTE, 26 * HOUR])
def test_the_last_call_of_a_pilot_is_the_same_moment_wherever_it_is_named(
    make_task: Callable[..., Any], make_job: Callable[..., Any], api: Callable[..., Client], ago: timedelta
) -> None:
    """Also when the jobs that wait came later, a job that was fetched began later, and the oldest job is taken back."""
    asked = NOW - ago
    task = make_task(status="running")
    Queue.objects.create(name="QUIET", site_name="A", capability="")
    hour = asked.replace(minute=0, second=0, microsecond=0)
    PilotCalls.objects.create(site="QUIET", hour=hour, get_job=3, last_get_job=asked)
    QueueActivity.objects.create(site="QUIET", last_start=asked + MINUTE)
    jobs = [
        make_job(task_id=task.id, status="activated", site="QUIET", state_change_time=NOW - m * MINUTE) for m in (20, 7)
    ]
    for job in jobs:
        statistics.refresh()
        site_statistics.run(NOW)
        attention.run(now=NOW)
        item = AttentionItem.objects.get(kind="no_pilots")
        assert f"no pilot has asked for any since {asked:%Y-%m-%d %H:%M:%S} UTC" in item.sentence
        assert item.since == asked
        why = api().get(f"/api/v2/tasks/{task.id}/why/").json()
        (gate,) = (one for one in why["gates"] if one["name"] == "pilots")
        assert f"(since {asked:%Y-%m-%d %H:%M:%S} UTC)" in gate["sentence"]
        assert f"{asked:%Y-%m-%d %H:%M:%S} UTC" in api().get("/sites/QUIET/").content.decode()
        Job.objects.filter(pk=job.pk).update(status="closed")


def test_full_storage_of_queues_that_take_jobs_is_told_of() -> None:
    """As brokers judge: by the first storage for outputs, by what is usable, and by what is set to be the least."""
    Agent.objects.all().delete()
    for name, free, more in (
        ("FULL", 250.0, {"space_min_free_gb": 60.0}),
        ("SECOND", 0.0, {}),
        ("ENOUGH", 200.0, {}),
        ("UNKNOWN", None, {}),
        ("CLOSED", 0.0, {}),
    ):
        StorageEndpoint.objects.create(name=name, site_name="A", space_free_gb=free, updated=NOW - HOUR, **more)
    for queue, status, stores in (
        ("ONE", "online", ("FULL", "SECOND")),
        ("TWO", "standby", ("FULL",)),
        ("THREE", "online", ("ENOUGH",)),
        ("FOUR", "online", ("UNKNOWN",)),
        ("FIVE", "offline", ("CLOSED",)),
    ):
        Queue.objects.create(name=queue, site_name="A", status=status)
        for order, store in enumerate(stores, 1):
            QueueEndpoint.objects.create(queue_id=queue, endpoint_id=store, order_read=1, order_write=order)
    attention.run(now=NOW)
    (item,) = AttentionItem.objects.filter(kind="full_storage")
    at = f"{NOW - HOUR:%Y-%m-%d %H:%M}"
    assert item.sentence == (
        f"190 GB are usable at FULL, at least 200 GB are needed, as of {at} UTC; "
        "jobs whose outputs go there are not sent to ONE, TWO."
    )
    assert (item.key, item.path, item.owner, item.size) == ("full_storage:FULL", "/sites/ONE/data/", "A", 2)
    GdpConfig.objects.create(
        app="jedi", component="jobbroker", key="STORAGE_MIN_FREE_SIZE", value="150", type="float", vo="wlcg"
    )
    configured.forget()
    attention.run(now=NOW + MINUTE)
    assert AttentionItem.objects.get(kind="full_storage").gone_at == NOW + MINUTE, "one broker still takes it"
