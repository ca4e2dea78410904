"""Each lock that waits, seen from a second connection: it is taken before anything is written, and several in one order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from brokerage_app.grid import configuring, queue_status, share_values
from brokerage_app.models import GdpConfig, GlobalShare, Queue, ReplicaLookup
from jedisite.agents import agent_orders, passes, registry
from jedisite.database import partitions
from jedisite.database.sql import hot_cursor
from jedisite.identity import callers, device_logins, throttle, tokens
from jedisite.models import Agent, ApiToken, DeviceLogin, LoginAttempts
from jedisite.vocabulary.roles import Caller, Role
from tasks_app.attention import keeping
from tasks_app.commands import bulk, rerun
from tasks_app.counts import statistics
from tasks_app.ddm.base import Maker
from tasks_app.ddm.local_storage import LocalCatalogue
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import Proof, Report
from tasks_app.failures import booking, classifying
from tasks_app.generation import store
from tasks_app.inputs import readers, released_files, schedules, staging
from tasks_app.inputs.registering import register_dataset
from tasks_app.lifecycle import file_availability, file_moves, file_removal, job_moves, nucleus_waits, queued_jobs
from tasks_app.messaging import inbox
from tasks_app.models import (
    AttentionItem,
    CatalogueDataset,
    ErrorFingerprint,
    File,
    InMessage,
    JobFile,
    PeriodicTask,
    Preassignment,
    Sandbox,
    Task,
    TaskChangeDue,
    TaskParams,
    TransferRule,
    Workflow,
    WorkflowPackage,
)
from tasks_app.outcomes import (
    bad_inputs,
    children,
    endings,
    inputs_back,
    left_jobs,
    libraries,
    lost_outputs,
    outcomes,
    recovery,
    transfer_ends,
)
from tasks_app.params.acts import ACTS
from tasks_app.params.faults import ParamErrors
from tasks_app.retries import task_changes
from tasks_app.submission import parameter_changes, sandbox_uploads, sandboxes, storing, submitting
from tasks_app.upkeep import analysis_classes, killing, nearly_complete, queue_filling
from tasks_app.workflows import failure_mails, line_holds
from tasks_app.workflows.dropping import remove_canceled
from tasks_app.workflows.workflow_acts import act_on_workflow
from tests.locks import FOR_NO_KEY_UPDATE, FOR_UPDATE, Row, waits, waits_for

pytestmark = pytest.mark.django_db(transaction=True)
ADMINISTRATOR = Caller("root", frozenset({Role.ADMINISTRATOR}))


@dataclass(frozen=True)
class Held:
    """What another connection holds, and the work that waits for it. `free` comes after the row in the order of locks.

    With `then`, the holder executes that on the row, and the work answers `answer`.
    """

    row: Row
    work: Callable[[], Any]
    free: Row | None = None
    held: str = FOR_UPDATE
    then: str = ""
    answer: Any = None


Case = Callable[[SimpleNamespace], Held]
WAITING: dict[str, Case] = {}


def at(place: str) -> Callable[[Case], Case]:
    def keep(case: Case) -> Case:
        assert WAITING.setdefault(place, case) is case, place
        return case

    return keep


@pytest.fixture
def made(make_task: Any, make_dataset: Any, make_job: Any, make_user: Any, task_params: Any) -> SimpleNamespace:
    return SimpleNamespace(task=make_task, dataset=make_dataset, job=make_job, user=make_user, params=task_params)


def whole(work: Callable[..., Any], *arguments: Any, **more: Any) -> Callable[[], Any]:
    """The work in one transaction, with a cursor as its first argument."""

    def run() -> Any:
        with transaction.atomic(), hot_cursor() as cursor:
            return work(cursor, *arguments, **more)

    return run


def in_one(work: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with transaction.atomic():
            return work()

    return run


def two(table: str, key: str, make: Callable[[], Any]) -> tuple[Row, Row]:
    low, high = sorted(row.pk for row in (make(), make()))
    return (table, key, low), (table, key, high)


def two_jobs(made: SimpleNamespace, **columns: Any) -> tuple[Row, Row]:
    return two("jobs", "pandaid", lambda: made.job(**columns))


COUNTED = {"files": 9, "files_to_be_used": 9, "files_used": 5, "files_finished": 2, "files_failed": 2}


def two_datasets(made: SimpleNamespace, task: Task, **columns: Any) -> tuple[Row, Row]:
    names = iter(("lab.a", "lab.b"))
    return two("jedi_datasets", "datasetid", lambda: made.dataset(task, **{"name": next(names), **COUNTED, **columns}))


def two_tasks(made: SimpleNamespace, **columns: Any) -> tuple[Row, Row]:
    return two("jedi_tasks", "jeditaskid", lambda: made.task(**columns))


def of_task(task: Task) -> Row:
    return "jedi_tasks", "jeditaskid", task.id


# --- jedisite


@at("jedisite/agents/passes.py:_release")
def a_pass_ends(made: SimpleNamespace) -> Held:
    passes.synchronise_after_migrate()
    fence = passes._take_lease("feeder", True)
    assert fence is not None
    return Held(("agents", "name", "feeder"), lambda: passes._release("feeder", fence, 1.0, registry.Pass(1), ""))


@at("jedisite/agents/agent_orders.py:set_period")
def an_agents_period(made: SimpleNamespace) -> Held:
    passes.synchronise_after_migrate()
    agent = Agent.objects.get(pk="feeder")
    return Held(("agents", "name", "feeder"), lambda: agent_orders.set_period(agent, 7.0, by="root", reason="x"))


@at("jedisite/identity/tokens.py:make")
def tokens_of_a_user(made: SimpleNamespace) -> Held:
    ada = made.user("ada")
    return Held(("auth_user", "id", ada.pk), lambda: tokens.make("ada", "n", days=1, by="ada"))


@at("jedisite/admin/token_admin.py:ApiTokenAdmin.revoke")
def tokens_that_are_revoked(made: SimpleNamespace) -> Held:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    for name in ("a", "b"):
        callers.issue_token(name, "user", user=made.user("ada"), lifetime=timedelta(days=1))
    low, high = ApiToken.objects.order_by("pk").values_list("pk", flat=True)
    posted = {"action": "revoke", "_selected_action": [high, low]}
    post = lambda: client.post("/admin/jedisite/apitoken/", posted)  # noqa: E731
    return Held(("api_tokens", "id", low), post, free=("api_tokens", "id", high))


@at("jedisite/identity/throttle.py:_count")
def attempts_that_are_counted(made: SimpleNamespace) -> Held:
    throttle.attempt(throttle.ADDRESS, "10.0.0.1")
    key = LoginAttempts.objects.get().key
    return Held(("login_attempts", "key", key), lambda: throttle.attempt(throttle.ADDRESS, "10.0.0.1"))


@at("jedisite/identity/throttle.py:_take_back")
def attempts_that_are_taken_back(made: SimpleNamespace) -> Held:
    throttle.begin_login("ada", "10.0.0.1")
    keys = (throttle.ADDRESS.key("10.0.0.1"), throttle.ACCOUNT.key("ada"))
    low, high = (("login_attempts", "key", key) for key in sorted(keys))
    return Held(low, lambda: throttle.succeeded("ada", "10.0.0.1"), free=high)


def device(**columns: Any) -> tuple[Row, int]:
    later = timezone.now() + timedelta(hours=1)
    row = DeviceLogin.objects.create(
        user_code="ABCD-EFGH", digest=device_logins._digest("code"), expires=later, **columns
    )
    return ("device_logins", "id", row.pk), row.pk


@at("jedisite/identity/device_logins.py:decide")
def a_device_that_is_let_in(made: SimpleNamespace) -> Held:
    row, number = device()
    ada = made.user("ada")
    return Held(row, lambda: device_logins.decide(number, ada, allow=False))


@at("jedisite/identity/device_logins.py:redeem")
def a_device_that_asks(made: SimpleNamespace) -> Held:
    row, _ = device()
    return Held(row, lambda: device_logins.redeem("code"))


@at("jedisite/identity/device_logins.py:renew")
def a_device_that_asks_again(made: SimpleNamespace) -> Held:
    row, _ = device(status="used", refresh_digest=device_logins._digest("again"))
    return Held(row, lambda: device_logins.renew("again"))


# --- brokerage


@at("brokerage_app/grid/configuring.py:_locked")
def a_value_of_the_configuration(made: SimpleNamespace) -> Held:
    key = ("rebroker", "FAST_REBRO_THRESHOLD_NQUEUE_MC")
    configuring.set_value(*key, "3", by="root")
    row = GdpConfig.objects.get()
    return Held(("gdp_config", "id", row.pk), lambda: configuring.set_value(*key, "4", by="root"))


@at("brokerage_app/grid/queue_status.py:set_status")
def a_queue_that_gets_a_status(made: SimpleNamespace) -> Held:
    Queue.objects.create(name="A", site_name="A")
    now = timezone.now()
    return Held(("queues", "name", "A"), lambda: queue_status.set_status("A", "offline", by="op", reason="x", now=now))


@at("brokerage_app/grid/queue_status.py:keep_held")
def queues_that_are_imported(made: SimpleNamespace) -> Held:
    for name in ("A", "B"):
        Queue.objects.create(name=name, site_name=name)
    rows = [{"name": name, "status": "online"} for name in ("B", "A")]
    keep = in_one(lambda: queue_status.keep_held(rows, timezone.now()))
    return Held(("queues", "name", "A"), keep, free=("queues", "name", "B"))


@at("brokerage_app/grid/share_values.py:set_values")
def values_of_shares(made: SimpleNamespace) -> Held:
    for name in ("A", "B"):
        GlobalShare.objects.create(name=name, value=1)
    change = lambda: share_values.set_values({"B": 2, "A": 2}, seen={}, by="op", reason="x")  # noqa: E731
    return Held(("global_shares", "name", "A"), change, free=("global_shares", "name", "B"))


# --- tasks


@at("tasks_app/retries/task_changes.py:_change")
def a_task_whose_change_is_due(made: SimpleNamespace) -> Held:
    task = made.task(status="running")
    TaskChangeDue.objects.create(task_id=task.id, change={"ramcount": 7}, reason="x")
    return Held(of_task(task), task_changes.carry_out)


@at("tasks_app/outcomes/children.py:abort_descendants")
def children_that_are_aborted(made: SimpleNamespace) -> Held:
    parent = made.task(status="failed")
    low, high = two_tasks(made, parent_id=parent.id)
    return Held(low, lambda: children.abort_descendants(parent.id, "failed", by="t"), free=high)


@at("tasks_app/outcomes/children.py:complete_children")
def children_that_are_about_to_end(made: SimpleNamespace) -> Held:
    parent = made.task(status="done")
    low, high = two_tasks(made, parent_id=parent.id, status="prepared")
    return Held(low, lambda: children.complete_children(parent.id, by="t"), free=high)


@at("tasks_app/outcomes/children.py:wake_children")
def children_that_wait(made: SimpleNamespace) -> Held:
    parent = made.task(status="done")
    low, high = two_tasks(made, parent_id=parent.id, status="pending")
    return Held(low, in_one(lambda: children.wake_children([parent.id])), free=high)


@at("tasks_app/outcomes/libraries.py:_settle_step")
def a_task_with_a_library(made: SimpleNamespace) -> Held:
    task = made.task()
    return Held(of_task(task), lambda: libraries.settle(task.id, 0, by="t"))


@at("tasks_app/outcomes/recovery.py:lock")
def a_task_and_its_readers(made: SimpleNamespace) -> Held:
    maker, reader = made.task(), made.task()
    made.dataset(maker, name="lab.out", type="output")
    made.dataset(reader, name="lab.out", type="input")
    return Held(of_task(maker), whole(recovery.lock, [maker.id]), free=of_task(reader))


@at("tasks_app/outcomes/bad_inputs.py:_set_aside")
def tasks_that_lose_a_file(made: SimpleNamespace) -> Held:
    low, high = made.task(), made.task()
    jobs = []
    for task in (high, low):
        dataset = made.dataset(task, type="input")
        jobs.append(made.job(task_id=task.id).id)
        for lfn in ("gone", "there"):
            JobFile.objects.create(job_id=jobs[-1], task_id=task.id, dataset_id=dataset.id, type="input", lfn=lfn)
    return Held(of_task(low), whole(bad_inputs._set_aside, jobs, ["gone"]), free=of_task(high))


@at("tasks_app/inputs/schedules.py:make_due")
def a_schedule(made: SimpleNamespace) -> Held:
    task, now = made.task(), timezone.now()
    TaskParams.objects.create(task_id=task.id, params=made.params())
    made.dataset(task, type="pseudo_input")
    past = now - timedelta(hours=1)
    PeriodicTask.objects.create(task=task, every_s=60, jobs=1, until=past, next_due=now)
    work = lambda: schedules.make_due(task.id, task.fence, now=now)  # noqa: E731
    return Held(("periodic_tasks", "jeditaskid", task.id), work)


@at("tasks_app/upkeep/analysis_classes.py:_into_express")
def a_task_that_is_hurried(made: SimpleNamespace) -> Held:
    task = made.task()
    return Held(of_task(task), lambda: analysis_classes._into_express(task.id))


@at("tasks_app/upkeep/queue_filling.py:_let_go")
def a_task_that_may_go_anywhere_again(made: SimpleNamespace) -> Held:
    task = made.task(site="A")
    Preassignment.objects.create(task_id=task.id, queue="A", since=timezone.now())
    work = lambda: queue_filling._let_go(task.id, task.fence, "x")  # noqa: E731
    gone = "DELETE FROM preassignments WHERE jeditaskid = %s"
    return Held(("preassignments", "jeditaskid", task.id), work, then=gone, answer=False)


@at("tasks_app/submission/parameter_changes.py:_open_tasks")
def tasks_that_get_a_priority(made: SimpleNamespace) -> Held:
    low, high = two_tasks(made)
    return Held(low, lambda: parameter_changes.change_priorities([high[2], low[2]], 5, by="op", reason="x"), free=high)


@at("tasks_app/submission/parameter_changes.py:change_in_place")
def a_task_that_is_changed(made: SimpleNamespace) -> Held:
    task = made.task()
    TaskParams.objects.create(task_id=task.id, params=made.params())
    return Held(of_task(task), lambda: parameter_changes.change_in_place(task.id, {"currentPriority": 5}, by="ada"))


@at("tasks_app/commands/bulk.py:give")
def tasks_that_get_a_command(made: SimpleNamespace) -> Held:
    low, high = two_tasks(made)
    work = lambda: bulk.give(ACTS["pause"], [high[2], low[2]], caller=ADMINISTRATOR, reason="x")  # noqa: E731
    return Held(low, work, free=high)


@at("tasks_app/web/tasks/doing.py:_do_to_one")
def a_task_that_gets_a_command_on_its_page(made: SimpleNamespace) -> Held:
    task, client = made.task(), Client()
    client.force_login(made.user("ada"))
    return Held(of_task(task), lambda: client.post(f"/tasks/{task.id}/do/pause/", {"reason": "x"}))


@at("tasks_app/submission/submitting.py:_same_task")
def a_task_of_the_same_name(made: SimpleNamespace) -> Held:
    submission = named(made)
    task = Task.objects.get(pk=submitting.submit(submission, by="ada").task_id)

    def work() -> None:
        with suppress(submitting.SubmissionRefusedError):
            submitting.submit(submission, by="ada")

    return Held(of_task(task), work)


def named(made: SimpleNamespace) -> submitting.Submission:
    ada = Caller("ada", frozenset({Role.USER}))
    return submitting.check(made.params(taskName="user.ada.once", uniqueTaskName=True), ada)


def sandbox(name: str, **columns: Any) -> Sandbox:
    return Sandbox.objects.create(
        owner="ada", name=name, stored=f"file of {name}", size=1, crc=1, sha256="x", **columns
    )


@at("tasks_app/attention/keeping.py:_stored")
def an_item_of_attention(made: SimpleNamespace) -> Held:
    item = AttentionItem.objects.create(key="x:1", kind="x", tone="bad", sentence="x", since=timezone.now(), path="/")
    return Held(("attention_items", "id", item.pk), lambda: keeping.reopen(item.pk, by="op", reason="x"))


@at("tasks_app/failures/classifying.py:classify")
def an_error_of_which_something_is_known(made: SimpleNamespace) -> Held:
    number = fingerprints("x")[0]
    known: dict[str, Any] = {"ticket": "T1", "known_until": None, "advice": "", "cause": "", "by": "op", "reason": "x"}
    return Held(("error_fingerprints", "id", number), lambda: classifying.classify(number, **known))


def fingerprints(*texts: str) -> list[int]:
    past = timezone.now() - timedelta(days=400)
    return [
        ErrorFingerprint.objects.create(
            component="pilot", code="1", text=text, category="unknown", first_seen=past, last_seen=past
        ).pk
        for text in texts
    ]


@at("tasks_app/counts/statistics.py:refresh")
def a_count_of_jobs(made: SimpleNamespace) -> Held:
    statistics.refresh()
    return Held(("statistics_refreshed", "name", statistics.JOB_COUNTS), statistics.refresh)


@at("tasks_app/counts/statistics.py:refresh_activity")
def a_look_at_what_queues_did(made: SimpleNamespace) -> Held:
    now = timezone.now()
    statistics.refresh_activity(now)
    return Held(("statistics_refreshed", "name", statistics.ACTIVITY), lambda: statistics.refresh_activity(now))


# --- jobs


def ended(rows: tuple[Row, Row]) -> dict[int, outcomes.Outcome]:
    return {row[2]: outcomes.Outcome(row[2], None, "closed") for row in reversed(rows)}


@at("tasks_app/outcomes/outcomes.py:_lock")
def jobs_that_end(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made)
    return Held(low, whole(outcomes._lock, ended((low, high))), free=high)


@at("tasks_app/outcomes/endings.py:end_jobs")
def jobs_of_a_task_that_are_killed(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_jobs(made, task_id=task.id)
    return Held(low, in_one(lambda: endings.end_jobs(task.id, by="t", reason="x")), free=high)


@at("tasks_app/upkeep/killing.py:kill_by_hand")
def jobs_that_somebody_kills(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, task_id=made.task().id)
    return Held(low, lambda: killing.kill_by_hand([high[2], low[2]], ADMINISTRATOR), free=high)


@at("tasks_app/outcomes/libraries.py:_waiting")
def jobs_that_wait_for_a_library(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, status="defined")
    for _, _, job in (high, low):
        JobFile.objects.create(job_id=job, file_id=7, type="lib", lfn="lib.tgz")
    return Held(low, whole(libraries._waiting, 7), free=high)


@at("tasks_app/upkeep/nearly_complete.py:hurry_jobs")
def jobs_that_are_hurried(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_jobs(made, task_id=task.id, current_priority=1)
    return Held(low, in_one(lambda: nearly_complete.hurry_jobs(task.id, 900, None)), free=high)


@at("tasks_app/lifecycle/job_moves.py:move_jobs_of_task")
def jobs_that_are_held_back(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_jobs(made, task_id=task.id, status="activated")
    return Held(
        low,
        in_one(lambda: job_moves.move_jobs_of_task(task.id, "activated", "throttled", by="t", reason="x")),
        free=high,
    )


@at("tasks_app/lifecycle/job_moves.py:move_some")
def jobs_whose_input_is_there(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, status="assigned")
    moved = {"by": "t", "reason": "x"}
    ids = [high[2], low[2]]
    return Held(low, whole(job_moves.move_some, ids, "assigned", "activated", **moved), free=high)


@at("tasks_app/outcomes/transfer_ends.py:_lock_jobs")
def jobs_whose_transfers_have_ended(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, status="assigned")
    for job in (high, low):
        TransferRule.objects.create(
            kind="copy", destination="SE", activity="Production Input", job_id=job[2], status="done"
        )
    return Held(low, transfer_ends.settle, free=high)


@at("tasks_app/lifecycle/queued_jobs.py:_set")
def jobs_that_get_a_priority(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_jobs(made, task_id=task.id, status="activated")
    return Held(low, in_one(lambda: queued_jobs.set_priority([task.id], 5)), free=high)


@at("tasks_app/lifecycle/queued_jobs.py:set_priority_of_jobs")
def jobs_of_packages_that_get_a_priority(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, status="activated")
    work = in_one(lambda: queued_jobs.set_priority_of_jobs([high[2], low[2]], 5))
    return Held(low, work, free=high, then="UPDATE jobs SET jobstatus = 'sent' WHERE pandaid = %s", answer=1)


@at("tasks_app/workflows/line_holds.py:_FREE")
def jobs_of_packages_that_are_held(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_jobs(made, task_id=task.id, status="activated")
    fetched = "UPDATE jobs SET jobstatus = 'sent' WHERE pandaid = %s"
    work = whole(line_holds._free, [high[2], low[2]])
    return Held(low, work, free=high, then=fetched, answer=[(high[2], task.id)])


@at("tasks_app/workflows/failure_mails.py:write_mail")
def a_workflow_whose_failures_are_told(made: SimpleNamespace) -> Held:
    workflow = Workflow.objects.create(name="reco", owner="ada", definition={})
    told = "UPDATE workflows SET failures_told = now() WHERE id = %s"
    work = in_one(lambda: failure_mails.write_mail(workflow.pk, timezone.now()))
    return Held(("workflows", "id", workflow.pk), work, then=told, answer=False)


@at("tasks_app/outcomes/left_jobs.py:fail_jobs_of")
def jobs_whose_pilot_has_ended(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, attempt=1, status="running", site="LAB", worker_id="7")
    work = lambda: left_jobs.fail_jobs_of({("7", "LAB"): "Its pilot is gone"})  # noqa: E731
    reported = "UPDATE jobs SET jobstatus = 'holding' WHERE pandaid = %s"
    return Held(low, work, free=high, then=reported, answer=1)


@at("tasks_app/lifecycle/job_reports.py:BEGIN")
def jobs_of_which_pilots_report(made: SimpleNamespace) -> Held:
    low, high = two_jobs(made, attempt=1)
    reports = [Report(row[2], "running", Proof(attempt=1)) for row in (high, low)]
    return Held(low, lambda: update_jobs(reports), free=high, held=FOR_NO_KEY_UPDATE)


@at("tasks_app/failures/booking.py:_fingerprints")
def errors_that_are_seen_again(made: SimpleNamespace) -> Held:
    high, low = fingerprints("b", "a")
    now = timezone.now()
    seen = {booking.Fingerprint("pilot", "1", text, "unknown"): (text, now, now) for text in ("b", "a")}
    table = "error_fingerprints"
    return Held((table, "id", low), whole(booking._fingerprints, seen), free=(table, "id", high))


# --- datasets and files


@at("tasks_app/outcomes/outcomes.py:_count")
def datasets_that_are_counted_on(made: SimpleNamespace) -> Held:
    low, high = two_datasets(made, made.task())
    counts = [(row[2], 1, 0, 0, 0) for row in (high, low)]
    return Held(low, whole(outcomes._count, counts), free=high)


@at("tasks_app/inputs/readers.py:_LOOK")
def datasets_that_read_what_was_made(made: SimpleNamespace) -> Held:
    low, high = two_datasets(made, made.task(), state="mutable", state_check_time=timezone.now())
    return Held(low, in_one(lambda: readers.wake_readers({"lab.a", "lab.b"})), free=high)


@at("tasks_app/inputs/readers.py:_ASK")
def places_of_datasets_that_have_changed(made: SimpleNamespace) -> Held:
    task, now = made.task(status="assigning"), timezone.now()
    for name in ("lab.a", "lab.b"):
        made.dataset(task, name=name)
        ReplicaLookup.objects.create(dataset=name, files=1, bytes=1, at=now)
    low, high = ("dataset_replica_lookups", "datasetname", "lab.a"), ("dataset_replica_lookups", "datasetname", "lab.b")
    return Held(low, in_one(lambda: readers.ask_again({"lab.a", "lab.b"})), free=high)


@at("tasks_app/lifecycle/nucleus_waits.py:_WAKE")
def tasks_that_wait_for_a_nucleus(made: SimpleNamespace) -> Held:
    low, high = two_tasks(made, status="assigning", next_check=timezone.now() + timedelta(minutes=20))
    for row in (low, high):
        made.dataset(Task.objects.get(pk=row[2]), name="lab.a")
    return Held(low, in_one(lambda: nucleus_waits.wake_readers(["lab.a"])), free=high)


@at("tasks_app/outcomes/lost_outputs.py:count_files")
def datasets_that_lost_files(made: SimpleNamespace) -> Held:
    low, high = two_datasets(made, made.task())
    return Held(low, whole(lost_outputs.count_files, [(row[2], 1, 0, 0, 0) for row in (high, low)]), free=high)


@at("tasks_app/inputs/staging.py:settle_task")
def a_task_whose_files_have_come_from_tape(made: SimpleNamespace) -> Held:
    task = made.task(status="staging", split_rule="IS=1")
    return Held(("jedi_tasks", "jeditaskid", task.id), lambda: staging.settle_task(task.id))


@at("tasks_app/outcomes/inputs_back.py:_take_back")
def a_task_that_ends_while_a_file_of_it_is_there_again(made: SimpleNamespace) -> Held:
    task = made.task(status="running")
    work = lambda: inputs_back._take_back(task.id, [])  # noqa: E731
    ends = "UPDATE jedi_tasks SET status = 'finishing' WHERE jeditaskid = %s"
    return Held(("jedi_tasks", "jeditaskid", task.id), work, then=ends, answer=0)


@at("tasks_app/inputs/released_files.py:_set_released")
def datasets_of_scouts(made: SimpleNamespace) -> Held:
    low, high = two_datasets(made, made.task())
    return Held(low, whole(released_files._set_released, {high[2]: 1, low[2]: 1}), free=high)


@at("tasks_app/generation/store.py:_count")
def datasets_of_new_jobs(made: SimpleNamespace) -> Held:
    low, high = two_datasets(made, made.task())
    return Held(low, whole(store._count, [store.Count(row[2], used=1) for row in (high, low)], []), free=high)


@at("tasks_app/lifecycle/file_moves.py:_count")
def datasets_that_are_tried_again(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_datasets(made, task)
    values = {"datasets": [high[2], low[2]], "all": False, "task": task.id}

    def work() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            file_moves._count(cursor, values, {low[2]: 1, high[2]: 1}, {}, {})

    return Held(low, work, free=high)


@at("tasks_app/lifecycle/file_moves.py:give_attempts")
def datasets_whose_files_get_attempts(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_datasets(made, task)
    for _, _, dataset in (high, low):
        tried(task.id, dataset, attempt=3)
    return Held(low, in_one(lambda: file_moves.give_attempts(task.id, 3)), free=high)


def tried(task_id: int, dataset_id: int, **columns: Any) -> File:
    return File.objects.create(
        task_id=task_id,
        dataset_id=dataset_id,
        lfn=f"f{File.objects.count()}",
        type="input",
        status="ready",
        max_attempt=3,
        keep_track=1,
        **columns,
    )


@at("tasks_app/commands/rerun.py:_grow_inputs")
def inputs_that_grow(made: SimpleNamespace) -> Held:
    parent, task = made.task(), made.task()
    two_datasets(made, parent, type="output")
    low, high = two_datasets(made, task)
    return Held(low, in_one(lambda: rerun._grow_inputs(task, parent.id)), free=high)


@at("tasks_app/submission/storing.py:mark_transient")
def outputs_that_need_not_be_kept(made: SimpleNamespace) -> Held:
    parent = made.task()
    low, high = two_datasets(made, parent, type="output")
    refined: Any = SimpleNamespace(transient=("lab.b", "lab.a"))
    return Held(low, in_one(lambda: storing.mark_transient(refined, parent.id)), free=high)


@at("tasks_app/ddm/local_storage.py:LocalCatalogue.create")
def datasets_of_the_catalogue(made: SimpleNamespace) -> Held:
    for name in ("lab.a", "lab.b"):
        CatalogueDataset.objects.create(name=name, scope="lab", owner="ada", made_by_task=7, open=True)
    table = "catalogue_datasets"
    create = lambda: LocalCatalogue().create(["lab.b", "lab.a"], scope="lab", by=Maker("ada", 7))  # noqa: E731
    return Held((table, "name", "lab.a"), create, free=(table, "name", "lab.b"))


@at("tasks_app/lifecycle/file_removal.py:_REMOVE_WHERE")
def files_that_are_removed(made: SimpleNamespace) -> Held:
    task = made.task()
    dataset = made.dataset(task, **COUNTED)
    low, high = two("jedi_dataset_contents", "fileid", lambda: tried(task.id, dataset.id, attempt=0))
    names = list(File.objects.filter(dataset_id=dataset.id).order_by("-id").values_list("lfn", flat=True))
    return Held(low, in_one(lambda: file_removal.remove(task.id, names)), free=high)


@at("tasks_app/lifecycle/file_removal.py:_remove")
def datasets_whose_files_are_removed(made: SimpleNamespace) -> Held:
    task = made.task()
    low, high = two_datasets(made, task)
    names = [tried(task.id, dataset, attempt=0).lfn for _, _, dataset in (high, low)]
    return Held(low, in_one(lambda: file_removal.remove(task.id, names)), free=high)


@at("tasks_app/lifecycle/file_availability.py:lose_where")
def files_that_are_lost(made: SimpleNamespace) -> Held:
    task = made.task()
    dataset = made.dataset(task, **COUNTED)
    low, high = two("jedi_dataset_contents", "fileid", lambda: tried(task.id, dataset.id, attempt=0))
    return Held(low, whole(file_availability.lose_where, task.id, dataset.id, "TRUE", {}), free=high)


@at("tasks_app/messaging/inbox.py:try_again")
def messages_that_are_tried_again(made: SimpleNamespace) -> Held:
    names = iter("ab")

    def parked() -> InMessage:
        row, _ = inbox.receive(next(names), "kick", {"task_id": 1, "agent": "feeder"}, sender="test")
        InMessage.objects.update(parked=timezone.now())
        return row

    low, high = two("messages_in", "id", parked)
    return Held(low, in_one(lambda: inbox.try_again([high[2], low[2]])), free=high)


@at("tasks_app/workflows/submitting_workflows.py:held_workflow")
def a_workflow_that_is_commanded(made: SimpleNamespace) -> Held:
    workflow = Workflow.objects.create(name="reco", owner="ada", definition={})
    WorkflowPackage.objects.create(workflow=workflow, path="001/001/001", software="reco")
    work = lambda: act_on_workflow(workflow.pk, "kill", caller=ADMINISTRATOR, reason="").begins  # noqa: E731
    return Held(("workflows", "id", workflow.pk), work)


@at("tasks_app/workflows/dropping.py:_hold_tasks")
def tasks_whose_packages_were_dropped(made: SimpleNamespace) -> Held:
    workflow = Workflow.objects.create(name="reco", owner="ada", definition={})

    def dropped() -> Task:
        task: Task = made.task(status="running")
        WorkflowPackage.objects.create(
            workflow=workflow,
            path=f"001/001/{task.id}"[:20],
            software="reco",
            task_id=task.id,
            boundary=0,
            is_canceled=True,
        )
        return task

    low, high = two("jedi_tasks", "jeditaskid", dropped)
    return Held(low, lambda: remove_canceled([workflow.pk]), free=high)


@pytest.mark.parametrize("place", WAITING)
def test_it_locks_the_row_before_it_decides_and_in_the_order_of_all(place: str, made: SimpleNamespace) -> None:
    case = WAITING[place](made)
    values = [case.row[2]] if case.then else []
    answer = waits(case.row, case.work, then=case.then, values=values, free=case.free, held=case.held)
    assert not case.then or answer == case.answer


# --- locks that are no row's


def test_sandboxes_of_one_owner_are_stored_one_after_the_other(made: SimpleNamespace) -> None:
    row = Sandbox(owner="ada", name="jobO.1.tar.gz", stored="a", size=1, crc=1, sha256="x")
    lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    waits_for(lock, ["sandboxes of ada"], lambda: sandbox_uploads._write_row(row))
    assert Sandbox.objects.get().owner == "ada"


def test_a_name_is_submitted_once_at_a_time(made: SimpleNamespace) -> None:
    submission = named(made)
    lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    waits_for(lock, ["task name user.ada.once"], lambda: submitting.submit(submission, by="ada"))
    assert Task.objects.get().name == "user.ada.once"


def test_names_of_files_are_taken_once_at_a_time(made: SimpleNamespace) -> None:
    first = made.task(status="registered")
    output = {"type": "template", "param_type": "output", "value": "--out=a.${SN}.txt", "dataset": "user.ada.hits"}
    second = submitting.check(made.params(jobParameters=[output]), Caller("ada", frozenset({Role.USER})))
    takes = """WITH taken AS (INSERT INTO planned_outputs (jeditaskid, dataset, file_name_template) VALUES (%s, %s, %s))
               SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"""
    values = [first.id, "user.ada.more", "a.${SN}.txt", "names of files user.ada a.${SN}.txt"]
    with pytest.raises(ParamErrors, match=f"Task {first.id}, which is registered, makes files of the same names"):
        waits_for(takes, values, lambda: submitting.submit(second, by="ada"))
    assert Task.objects.get() == first


def test_files_of_one_scope_are_registered_one_after_the_other(made: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("1")
    first = CatalogueDataset.objects.create(name="user.ada.first", scope="user.ada")
    takes = """WITH taken AS (INSERT INTO catalogue_files (dataset_id, lfn, scope, guid, size, adler32, endpoint, url)
                             VALUES (%s, 'n.csv', 'user.ada', '', 1, '1', 'SE', ''))
               SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"""
    with pytest.raises(ValueError, match=r"the scope user\.ada has a file n\.csv already, with another content"):
        waits_for(
            takes,
            [first.id, "files of user.ada"],
            lambda: register_dataset("user.ada.second", "user.ada", [tmp_path / "n.csv"]),
        )
    assert list(CatalogueDataset.objects.all()) == [first]


def test_a_sandbox_that_is_removed_at_this_moment_is_noted_for_no_task(made: SimpleNamespace) -> None:
    row, task = sandbox("jobO.1.tar.gz"), made.task()
    gone = "DELETE FROM sandboxes WHERE id = %s"
    held = "AccessShareLock"
    waits(("sandboxes", "id", row.pk), lambda: sandboxes.used(row.name, task.id), then=gone, values=[row.pk], held=held)


def test_a_row_that_lands_in_the_default_partition_at_this_moment_moves_to_the_new_one(made: SimpleNamespace) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE TABLE shelves (n bigint) PARTITION BY RANGE (n);
               CREATE TABLE shelves_default PARTITION OF shelves DEFAULT"""
        )
    try:
        make = lambda: partitions._make("shelves", "shelves_0", "0", "10")  # noqa: E731
        assert waits_for("INSERT INTO shelves VALUES (%s)", [3], make)
        with connection.cursor() as cursor:
            cursor.execute("SELECT n FROM shelves_0")
            assert cursor.fetchall() == [(3,)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE shelves")


def test_tasks_below_children_that_are_done_by_now_are_locked_before_any_dataset(made: SimpleNamespace) -> None:
    parent = made.task(status="done")
    first, second = (made.task(parent_id=parent.id, status="finished") for _ in range(2))
    for child in (first, second):
        made.dataset(child, files=1, files_to_be_used=1, files_used=1, files_finished=1)
    made.dataset(first, type="output", name="lab.made")
    below = made.task(parent_id=second.id, status="pending")
    read = made.dataset(below, name="lab.made", state="mutable")
    settle = in_one(lambda: children.settle_children(parent.id, "done", by="t"))
    waits(of_task(below), settle, free=("jedi_datasets", "datasetid", read.id))
    assert {Task.objects.get(pk=child.id).status for child in (first, second)} == {"done"}
