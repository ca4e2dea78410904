"""Each lock that does not wait: rows that another connection holds are passed over, and come at the next call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from brokerage_app.grid import queue_status
from brokerage_app.models import GlobalShare, Queue
from jedisite.database.sql import hot_cursor
from tasks_app.agents.watchdogs import job_timeouts, old_failures
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.domain import job_refusal_codes
from tasks_app.domain.priorities import Raise
from tasks_app.domain.reasons import Reason
from tasks_app.generation import groups, throttle
from tasks_app.lifecycle.job_hooks import Slot
from tasks_app.lifecycle.job_moves import place_waiting
from tasks_app.models import ErrorFingerprint, Job, JobOutputReport, Sandbox, Task
from tasks_app.submission.sandboxes import remove, used
from tasks_app.upkeep import overloaded_queues, user_priorities
from tasks_app.upkeep.rules.overload import FastRebrokerage
from tests.locks import Row, skips

pytestmark = pytest.mark.django_db(transaction=True)
PAST = timedelta(days=400)
BY_AGE, BY_SHARE = 0, 99


@dataclass(frozen=True)
class Taken:
    """Work that comes to two rows, and those of the two that it has left."""

    held: Row
    other: Any
    work: Callable[[], Any]
    left: Callable[[], set[Any]]


Case = Callable[[SimpleNamespace], Taken]
PASSED_OVER: dict[str, Case] = {}


def at(place: str) -> Callable[[Case], Case]:
    def keep(case: Case) -> Case:
        assert PASSED_OVER.setdefault(place, case) is case, place
        return case

    return keep


@pytest.fixture
def made(make_task: Any, make_job: Any) -> SimpleNamespace:
    return SimpleNamespace(task=make_task, job=make_job)


def two_jobs(made: SimpleNamespace, work: Callable[[list[int]], Any], left: str, **columns: Any) -> Taken:
    """The work on two jobs, of which those that it has left are in the state `left`."""
    low, high = made.job(**columns), made.job(**columns)
    remaining = lambda: set(Job.objects.filter(status=left).values_list("id", flat=True))  # noqa: E731
    return Taken(("jobs", "pandaid", low.id), high.id, lambda: work([low.id, high.id]), remaining)


@at("brokerage_app/grid/queue_status.py:end_due")
def statuses_that_end(made: SimpleNamespace) -> Taken:
    now = timezone.now()
    for name in ("A", "B"):
        Queue.objects.create(name=name, site_name=name)
        queue_status.set_status(name, "offline", by="op", reason="x", until=now + timedelta(hours=1), now=now)
    left = lambda: set(Queue.objects.filter(status="offline").values_list("name", flat=True))  # noqa: E731
    return Taken(("queues", "name", "A"), "B", lambda: queue_status.end_due(now + timedelta(hours=2)), left)


@at("tasks_app/upkeep/old_rows.py:delete_fingerprints")
def errors_that_nobody_has_any_more(made: SimpleNamespace) -> Taken:
    long_ago = timezone.now() - PAST
    low, high = (
        ErrorFingerprint.objects.create(
            component="pilot", code="1", text=text, category="unknown", first_seen=long_ago, last_seen=long_ago
        ).pk
        for text in ("a", "b")
    )
    left = lambda: set(ErrorFingerprint.objects.values_list("pk", flat=True))  # noqa: E731
    return Taken(("error_fingerprints", "id", low), high, old_failures.run, left)


def sandbox(name: str) -> int:
    return Sandbox.objects.create(
        owner="ada", name=name, stored=f"file of {name}", size=1, crc=1, sha256="x", last_used=timezone.now() - PAST
    ).pk


@at("tasks_app/submission/sandboxes.py:remove")
def sandboxes_that_are_removed(made: SimpleNamespace) -> Taken:
    low, high = sandbox("a"), sandbox("b")
    left = lambda: set(Sandbox.objects.values_list("pk", flat=True))  # noqa: E731
    return Taken(("sandboxes", "id", low), high, lambda: remove([low, high]), left)


@at("tasks_app/upkeep/overloaded_queues.py:_LOCK")
def jobs_that_go_elsewhere(made: SimpleNamespace) -> Taken:
    step = FastRebrokerage("MC", "A", 9, Reason(job_refusal_codes.JOB_QUEUE_OVERLOADED, "x"))

    def close(ids: list[int]) -> None:
        with transaction.atomic(), hot_cursor() as cursor:
            overloaded_queues.close_excess(cursor, dict.fromkeys(ids, step), [])

    return two_jobs(made, close, "activated", status="activated", task_id=made.task().id)


@at("tasks_app/upkeep/user_priorities.py:_RAISE")
def jobs_of_a_user_who_lacks(made: SimpleNamespace) -> Taken:
    low, high = (
        made.job(status="activated", prod_source_label="user", current_priority=100, site="A").id for _ in range(2)
    )
    raised = Raise(("ada", ""), "A", 9, 0, 50)
    left = lambda: set(Job.objects.filter(current_priority=100).values_list("id", flat=True))  # noqa: E731
    return Taken(("jobs", "pandaid", low), high, lambda: user_priorities.raise_priorities([raised]), left)


@at("tasks_app/upkeep/expiring.py:_end")
def jobs_whose_report_is_being_booked(made: SimpleNamespace) -> Taken:
    long_ago = timezone.now() - PAST
    low, high = (
        made.job(status="holding", prod_source_label="managed", state_change_time=long_ago, creation_time=long_ago).id
        for _ in range(2)
    )
    for job in (low, high):
        JobOutputReport.objects.create(id=job, attempt=1, status="finished", data={})
    left = lambda: set(Job.objects.filter(status="holding").values_list("id", flat=True))  # noqa: E731
    return Taken(("job_output_report", "pandaid", low), high, job_timeouts.run, left)


@at("tasks_app/generation/throttle.py:_NOTE")
def sentences_on_tasks_that_go_on(made: SimpleNamespace) -> Taken:
    low, high = (made.task(status="ready", error_dialog=f"{throttle.SAYS}x").id for _ in range(2))
    found = groups.Throttle()
    left = lambda: set(Task.objects.filter(error_dialog__startswith=throttle.SAYS).values_list("id", flat=True))  # noqa: E731
    return Taken(("jedi_tasks", "jeditaskid", low), high, lambda: throttle._say(found, "TRUE"), left)


def handed_out(made: SimpleNamespace, draw: int = BY_SHARE, **columns: Any) -> Taken:
    def fetch(_: list[int]) -> Any:
        return get_jobs(Request("SITE_A", count=9), draw=draw)

    return two_jobs(made, fetch, "activated", status="activated", site="SITE_A", **columns)


@at("tasks_app/lifecycle/job_handout.py:BY_NUMBER")
def jobs_by_age(made: SimpleNamespace) -> Taken:
    GlobalShare.objects.create(name="A", value=100)
    return handed_out(made, draw=BY_AGE, gshare="A")


@at("tasks_app/lifecycle/job_handout.py:BY_LINE")
def jobs_of_a_share(made: SimpleNamespace) -> Taken:
    GlobalShare.objects.create(name="A", value=100)
    return handed_out(made, gshare="A")


@at("tasks_app/lifecycle/job_handout.py:BY_LINE 2")
def jobs_of_no_share(made: SimpleNamespace) -> Taken:
    GlobalShare.objects.create(name="A", value=100)
    return handed_out(made)


@at("tasks_app/lifecycle/job_moves.py:_PLACE")
def jobs_that_wait_for_a_queue(made: SimpleNamespace) -> Taken:
    def place(ids: list[int]) -> None:
        with transaction.atomic(), hot_cursor() as cursor:
            place_waiting(cursor, ids, Slot("A", None, 1, 2000, "SCORE"), by="test", reason="x")

    return two_jobs(made, place, "waiting", status="waiting")


@pytest.mark.parametrize("place", PASSED_OVER)
def test_what_somebody_has_is_passed_over_and_comes_later(place: str, made: SimpleNamespace) -> None:
    case = PASSED_OVER[place](made)
    held = case.held[2]
    assert case.left() == {held, case.other}
    skips(case.held, case.work)
    assert case.left() == {held}
    case.work()
    assert case.left() == set()


def test_tasks_that_share_a_sandbox_do_not_wait_for_one_another_to_date_it(made: SimpleNamespace) -> None:
    number, task = sandbox("a"), made.task()
    skips(("sandboxes", "id", number), lambda: used("a", task.id), strength="NO KEY UPDATE")
    row = Sandbox.objects.get()
    assert list(row.tasks.values_list("id", flat=True)) == [task.id] and row.last_used < timezone.now() - PAST / 2
    used("a", task.id)
    row.refresh_from_db()
    assert row.last_used > timezone.now() - PAST / 2
