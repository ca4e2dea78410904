"""Locks, claims and fences, each seen from a second connection: what waits, what is passed over, what a late holder may do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from brokerage_app.models import Sample, VerdictRecord, WorkQueue
from brokerage_app.verdicts import records
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.verdict import Verdict
from jedisite.agents import passes, registry
from jedisite.agents.pass_queue import PassQueue
from jedisite.database.sql import hot_cursor
from jedisite.models import Agent
from tasks_app.agents import commando, merger
from tasks_app.agents.watchdogs import (
    archive,
    expired_datasets,
    lost_jobs,
    old_messages,
    paused_tasks,
    stale_locks,
)
from tasks_app.alerts import alert_ways
from tasks_app.api.v2 import idempotency
from tasks_app.commands import obeying
from tasks_app.configured import timeout_limits
from tasks_app.counts import sampling
from tasks_app.dispatch import harvester_commands as harvester
from tasks_app.failures import booking
from tasks_app.generation import merge_turns, mergejobs
from tasks_app.inputs import file_rows
from tasks_app.lifecycle import claims, nucleus_waits, task_moves
from tasks_app.lifecycle.job_moves import move_free_jobs
from tasks_app.lifecycle.turn_order import Turns
from tasks_app.messaging import effects, inbox, publishing, sending
from tasks_app.models import (
    Alert,
    AlertRule,
    CatalogueDataset,
    Command,
    Dataset,
    File,
    HarvesterCommand,
    InMessage,
    Job,
    JobArchive,
    JobEndDue,
    JobOutputReport,
    Notification,
    OutMessage,
    SubmissionKey,
    Task,
    TaskChangeDue,
    TaskStatusLog,
)
from tasks_app.outcomes import final_reports, finishing, task_progress
from tasks_app.retries import task_changes
from tasks_app.scouts import measuring_again
from tasks_app.scouts.rules import scouts
from tasks_app.submission import command_queue
from tests.flow.driving import settle, states, task
from tests.flow.pilot import Pilot
from tests.flow.test_merging import first_jobs, merge_jobs, merging_task
from tests.locks import another, skips, waits

pytestmark = pytest.mark.usefixtures("tables")
Make = Callable[..., Any]
OLD = timedelta(days=400)


def of_task(task_id: int) -> tuple[str, str, int]:
    return "jedi_tasks", "jeditaskid", task_id


def of_job(job_id: int) -> tuple[str, str, int]:
    return "jobs", "pandaid", job_id


# --- claims


def test_a_claim_passes_over_tasks_that_another_transaction_holds(make_task: Make) -> None:
    held, free = make_task(status="ready", current_priority=900), make_task(status="ready")
    make_task(status="paused")
    assert skips(of_task(held.id), lambda: claims.claim_tasks("p", ["ready"], 9)) == [(free.id, 1)]
    assert claims.claim_tasks("q", ["ready"], 9) == [(held.id, 1)], "what is claimed is passed over as well"


def test_a_claim_takes_the_most_urgent_of_its_states_that_are_due_and_meet_its_condition(make_task: Make) -> None:
    late = timezone.now() + timedelta(hours=1)
    low, high = make_task(status="ready", current_priority=1), make_task(status="ready", current_priority=2)
    waiting = make_task(status="ready", current_priority=9, next_check=late)
    other = make_task(status="ready", current_priority=9, site="B")
    condition, values = "t.site IS DISTINCT FROM %(site)s", {"site": "B"}
    assert claims.claim_tasks("p", ["ready"], 1, condition=condition, values=values) == [(high.id, 1)]
    assert claims.claim_tasks("p", ["ready"], 9, condition=condition, values=values) == [(low.id, 1)]
    assert claims.claim_tasks("p", ["ready"], 1, condition=condition, values=values, even_waiting=True) == [
        (waiting.id, 1)
    ]
    assert task(other.id).locked_by is None and task(low.id).locked_by == "p"


def test_turns_go_round_queues_then_users_and_each_user_has_the_most_urgent_first(make_task: Make) -> None:
    def of(label: str, user: str, priority: int, queue: int | None = None) -> int:
        fields = {"status": "ready", "prod_source_label": label, "user": user, "current_priority": priority}
        made: int = make_task(**fields, work_queue_id=queue).id
        return made

    heavy = WorkQueue.objects.create(name="heavy", type="managed", vo="lab").id
    analysis = [of("user", name, 900) for name in ("ada", "bob", "cleo", "dan")]
    more = of("user", "ada", 950)
    simulation = [of("managed", "prod", 700 - n) for n in range(3)]
    ions = [of("managed", "prod", 500 - n, heavy) for n in range(2)]
    late = of("managed", "prod", 999, heavy)
    Task.objects.filter(pk=late).update(next_check=timezone.now() + timedelta(hours=1))
    claimed = [number for number, _ in claims.claim_tasks("p", ["ready"], 6, turns=Turns())]
    assert claimed == [more, simulation[0], ions[0], analysis[1], simulation[1], ions[1]], "ada's second waits for bob"
    rest = [number for number, _ in claims.claim_tasks("q", ["ready"], 9, turns=Turns())]
    assert rest == [analysis[0], simulation[2], analysis[2], analysis[3]]
    assert task(late).locked_by is None


def test_a_user_with_tasks_of_several_labels_has_the_turns_of_one_user(make_task: Make) -> None:
    def of(label: str, user: str) -> int:
        made: int = make_task(status="ready", prod_source_label=label, user=user, current_priority=900).id
        return made

    mine = [of(label, "mal") for label in ("test", "user", "test", "user")]
    others = [of("user", name) for name in ("ada", "bob")]
    claimed = [number for number, _ in claims.claim_tasks("p", ["ready"], 6, turns=Turns())]
    assert claimed == [mine[0], *others, *mine[1:]]


def lost(make_task: Make, **columns: Any) -> tuple[int, int, int]:
    """A task whose first claim is gone and that another holds: its number, the old fence, the new one."""
    made = make_task(status="ready", **columns)
    ((_, old),) = claims.claim_tasks("slow", ["ready"], 1)
    stale_locks.run(lease=timedelta())
    ((_, new),) = claims.claim_tasks("quick", ["ready"], 1)
    assert old < new
    return made.id, old, new


LATE: dict[str, Callable[[int, int], Any]] = {
    "move_task": lambda t, f: task_moves.move_task(t, "running", by="slow", fence=f),
    "set_aside": lambda t, f: task_moves.set_aside(t, f, by="slow", reason="x"),
    "break_task": lambda t, f: task_moves.break_task(t, f, by="slow", reason="x"),
    "note_task": lambda t, f: task_moves.note_task(t, f, by="slow", reason="x", site="Z"),
}


@pytest.mark.parametrize("act", LATE.values(), ids=LATE.keys())
def test_a_holder_whose_claim_is_gone_can_move_nothing(make_task: Make, act: Callable[[int, int], Any]) -> None:
    made, old, new = lost(make_task)
    before = Task.objects.values().get(pk=made)
    with pytest.raises(claims.LostClaimError):
        act(made, old)
    assert Task.objects.values().get(pk=made) == before and not TaskStatusLog.objects.filter(by="slow").exists()
    act(made, new)


def test_a_release_frees_only_the_claim_that_it_is_of(make_task: Make) -> None:
    made, old, new = lost(make_task)
    claims.release_task(made, old, wait=timedelta(hours=1), note="late", thawed=True)
    assert (task(made).locked_by, task(made).error_dialog) == ("quick", None)
    claims.release_task(made, new, wait=timedelta(hours=1), note="in time")
    assert (task(made).locked_by, task(made).error_dialog) == (None, "in time")
    assert task(made).next_check > timezone.now() + timedelta(minutes=59)


def test_a_look_for_a_nucleus_sets_the_next_one_of_the_claim_that_it_is_of(make_task: Make) -> None:
    made, old, new = lost(make_task)
    before, now = task(made).next_check, timezone.now()
    nucleus_waits.begin_look(made, old, now)
    assert task(made).next_check == before
    nucleus_waits.begin_look(made, new, now)
    assert task(made).next_check == now + timedelta(minutes=30)
    claims.release_task(made, new, wait=None)
    assert task(made).next_check == now + timedelta(minutes=30)


def test_still_holds_is_true_of_the_claim_that_is_on_and_keeps_it(make_task: Make) -> None:
    made, old, new = lost(make_task)
    other = make_task(status="ready", fence=old)
    with transaction.atomic():
        assert claims.still_holds(made, new) and not claims.still_holds(made, old)
        assert claims.still_holds(other.id, old)

    def ask() -> bool:
        with transaction.atomic():
            return claims.still_holds(made, new)

    freed = "UPDATE jedi_tasks SET fence = fence + 1 WHERE jeditaskid = %s"
    assert waits(of_task(made), ask, then=freed, values=[made]) is False, (
        "it waits for who frees the claim, and sees that"
    )


def test_hold_renews_the_claim_that_is_on_and_no_other(make_task: Make) -> None:
    made, old, new = lost(make_task)
    Task.objects.update(locked_time=timezone.now() - timedelta(seconds=50))
    with hot_cursor() as cursor, pytest.raises(claims.LostClaimError):
        file_rows.hold(cursor, made, old)
    assert stale_locks.run(lease=timedelta(seconds=40), now=timezone.now()).items == 1
    ((_, newer),) = claims.claim_tasks("third", ["ready"], 1)
    assert newer > new
    Task.objects.update(locked_time=timezone.now() - timedelta(seconds=50))
    with hot_cursor() as cursor:
        file_rows.hold(cursor, made, newer)
    assert stale_locks.run(lease=timedelta(seconds=40), now=timezone.now()).items == 0


def test_a_claim_of_a_stopped_agent_is_free_after_a_minute_unless_it_is_renewed(make_task: Make) -> None:
    """The process lives: it may be suspended, or on another host."""
    stopped, at_work = make_task(status="ready"), make_task(status="ready")
    (first, second) = claims.claim_tasks(passes.owner(), ["ready"], 9)
    now = timezone.now()
    assert timeout_limits.limit("lock.task") == timedelta(seconds=registry.LEASE_S)
    assert stale_locks.run(now=now + timedelta(seconds=58)).items == 0
    Task.objects.update(locked_time=now - timedelta(seconds=30))
    claims._renew([(stopped.id, first[1] - 1), second])
    assert stale_locks.run(now=now + timedelta(seconds=31)).items == 1
    assert (task(stopped.id).locked_by, task(at_work.id).locked_by) == (None, passes.owner())
    assert task(stopped.id).fence == first[1] + 1


def test_moves_wait_for_who_holds_the_task_and_decide_on_what_he_wrote(make_task: Make) -> None:
    made = make_task(status="ready")
    paused = "UPDATE jedi_tasks SET status = 'done' WHERE jeditaskid = %s"
    with pytest.raises(task_moves.IllegalMoveError):
        waits(of_task(made.id), lambda: task_moves.move_task(made.id, "running", by="t"), then=paused, values=[made.id])
    made = make_task(status="ready")
    with pytest.raises(command_queue.CommandRefusedError):
        waits(
            of_task(made.id),
            lambda: command_queue.give_command(made.id, "pause", by="ada"),
            then=paused,
            values=[made.id],
        )
    made = make_task(status="ready")
    moved = "UPDATE jedi_tasks SET fence = fence + 1 WHERE jeditaskid = %s"
    with pytest.raises(claims.LostClaimError):
        waits(
            of_task(made.id), lambda: task_moves.note_task(made.id, 0, by="t", reason=""), then=moved, values=[made.id]
        )


# --- leases of agents


def test_a_pass_whose_lease_is_gone_neither_renews_nor_records(db: None) -> None:
    passes.synchronise_after_migrate()
    old = passes._take_lease("feeder", True)
    Agent.objects.filter(name="feeder").update(lease_until="2026-01-01T00:00Z")
    new = passes._take_lease("feeder", True)
    assert old is not None and new is not None and old < new
    Agent.objects.filter(name="feeder").update(lease_until=timezone.now() + timedelta(seconds=5))
    before = Agent.objects.values().get(pk="feeder")
    token = passes._current.set(("feeder", old))
    passes.renew_lease()
    passes._current.reset(token)
    passes._release("feeder", old, 1.0, registry.Pass(3), "late")
    assert Agent.objects.values().get(pk="feeder") == before
    token = passes._current.set(("feeder", new))
    passes.renew_lease()
    passes._current.reset(token)
    assert Agent.objects.get(pk="feeder").lease_until > before["lease_until"]
    passes._release("feeder", new, 1.0, registry.Pass(3), "")
    assert (Agent.objects.get(pk="feeder").lease_owner, Agent.objects.get(pk="feeder").passes) == (None, 1)


def test_a_ticker_passes_over_agents_that_another_takes(db: None) -> None:
    passes.synchronise_after_migrate()
    Agent.objects.update(due_at="2026-01-01T00:00Z", queued_at=None)
    taken = skips(("agents", "name", "feeder"), passes.take_due)
    assert set(taken) == set(registry.REGISTRY) - {"feeder"}


def test_a_cluster_passes_over_a_pass_that_another_takes(db: None) -> None:
    queue = PassQueue("here")
    first, second = (int(queue.enqueue(text)) for text in ("first", "second"))
    assert skips(("django_q_ormq", "id", first), queue.dequeue) == [(second, "second")]
    assert queue.dequeue() == [(first, "first")], "the other one let it go"
    assert queue.dequeue() is None


def test_a_site_that_starts_passes_over_agents_that_another_process_has(db: None) -> None:
    passes.synchronise_after_migrate()
    Agent.objects.update(due_at="2026-01-01T00:00Z")
    assert skips(("agents", "name", "feeder"), passes.count_anew) == Agent.objects.count() - 1
    assert Agent.objects.filter(due_at="2026-01-01T00:00Z").get().name == "feeder"


# --- rows that one process has are passed over by the others


def reports(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rows = [make_job(status="holding") for _ in range(2)]
    for job in rows:
        JobOutputReport.objects.create(id=job.id, attempt=1, status="failed", data={})
    left = lambda: set(JobOutputReport.objects.values_list("id", flat=True))  # noqa: E731
    return "job_output_report", "pandaid", [job.id for job in rows], final_reports.book_reports, left


def ends(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rows = [make_job(status="finished", state_change_time=timezone.now()) for _ in range(2)]
    JobEndDue.objects.bulk_create([JobEndDue(id=job.id) for job in rows], ignore_conflicts=True)
    left = lambda: set(JobEndDue.objects.values_list("id", flat=True))  # noqa: E731
    return "job_ends_due", "pandaid", [job.id for job in rows], lambda: booking.book_ends(9), left


def old_jobs(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    ended = make_task(status="done")
    rows = [make_job(status="finished", task_id=ended.id, modification_time=timezone.now() - OLD) for _ in range(2)]
    bystanders = [
        make_job(status="running", task_id=ended.id, modification_time=timezone.now() - OLD),
        make_job(status="finished", task_id=make_task().id, modification_time=timezone.now() - OLD),
        make_job(status="finished", task_id=ended.id, modification_time=timezone.now()),
    ]

    def left() -> set[int]:
        ids = set(Job.objects.values_list("id", flat=True))
        assert {job.id for job in bystanders} <= ids and not ids & set(JobArchive.objects.values_list("id", flat=True))
        return ids - {job.id for job in bystanders}

    return "jobs", "pandaid", [job.id for job in rows], archive.run, left


def left_claims(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rows = [make_task(status="ready", locked_by="x", locked_time=timezone.now() - OLD) for _ in range(2)]
    make_task(status="ready", locked_by="y", locked_time=timezone.now())
    left = lambda: set(Task.objects.filter(locked_by="x").values_list("id", flat=True))  # noqa: E731
    return "jedi_tasks", "jeditaskid", [row.id for row in rows], stale_locks.run, left


def commands(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rows = [Command.objects.create(task=make_task(status="ready"), name="pause", owner="ada") for _ in range(2)]
    left = lambda: set(Command.objects.filter(status="waiting").values_list("id", flat=True))  # noqa: E731
    return "task_commands", "id", [row.id for row in rows], commando.run, left


def inbox_rows(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    made = make_task(status="ready")
    payload = {"task_id": made.id, "agent": "feeder"}
    rows = [inbox.receive(f"m{n}", "kick", payload, sender="test")[0] for n in range(2)]
    now = timezone.now() + timedelta(seconds=5)
    left = lambda: set(InMessage.objects.filter(processed=None).values_list("id", flat=True))  # noqa: E731

    def work() -> None:
        while inbox.process_next(now):
            pass

    return "messages_in", "id", [row.id for row in rows], work, left


def mails(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    made = make_task(status="done")
    due = timezone.now() - timedelta(hours=1)
    rows = [Notification.objects.create(task_id=made.id, status=status, next_try=due) for status in ("done", "paused")]
    left = lambda: set(Notification.objects.filter(attempts=0).values_list("id", flat=True))  # noqa: E731
    return "notifications", "id", [row.id for row in rows], lambda: sending.claim_mails(9, timezone.now()), left


def alerts(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rule = AlertRule.objects.create(name="nights", mail_to=["ada@lab.org"])
    due = timezone.now() - timedelta(hours=1)
    rows = [Alert.objects.create(rule=rule, way="mail", payload={"text": "x"}, next_try=due) for _ in range(2)]
    left = lambda: set(Alert.objects.filter(attempts=0).values_list("id", flat=True))  # noqa: E731
    return "alerts", "id", [row.id for row in rows], lambda: alert_ways.claim_alerts(9, timezone.now()), left


def changes(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    made = make_task(status="ready")
    rows = [TaskChangeDue.objects.create(task_id=made.id, change={"ramcount": n}, reason="x") for n in (1, 2)]
    left = lambda: set(TaskChangeDue.objects.values_list("id", flat=True))  # noqa: E731
    return TaskChangeDue._meta.db_table, "id", [row.id for row in rows], task_changes.carry_out, left


def expired(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    past = timezone.now() - timedelta(days=1)
    rows = [
        CatalogueDataset.objects.create(name=f"lab.{n}", scope="lab", open=False, expires=past, made_by_task=7)
        for n in range(2)
    ]
    left = lambda: set(CatalogueDataset.objects.values_list("id", flat=True))  # noqa: E731
    return CatalogueDataset._meta.db_table, "id", [row.id for row in rows], expired_datasets.run, left


def silent(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    past = timezone.now() - timedelta(days=2)
    rows = [make_job(status="running", heartbeat_at=past, creation_time=past, state_change_time=past) for _ in range(2)]
    left = lambda: set(Job.objects.filter(status="running").values_list("id", flat=True))  # noqa: E731
    return "jobs", "pandaid", [row.id for row in rows], lost_jobs.run, left


def queued(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    rows = [make_job(status="activated", site="A") for _ in range(2)]
    bystanders = {make_job(status="activated", site="B").id, make_job(status="defined", site="A").id}

    def work() -> int:
        return move_free_jobs(
            "activated", "throttled", "j.computingsite = %(s)s", {"s": "A"}, by="t", reason="x", limit=9
        )

    def left() -> set[int]:
        ids = set(Job.objects.exclude(status="throttled").values_list("id", flat=True))
        assert bystanders <= ids
        return ids - bystanders

    return "jobs", "pandaid", [row.id for row in rows], work, left


def of_paused(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    long_ago = timezone.now() - OLD
    paused = make_task(status="paused", state_change_time=long_ago)
    rows = [make_job(status="assigned", task_id=paused.id) for _ in range(2)]
    other = make_job(status="assigned", task_id=make_task(status="running", state_change_time=long_ago).id)

    def left() -> set[int]:
        ids = set(Job.objects.filter(status="assigned").values_list("id", flat=True))
        return ids - {other.id} if other.id in ids else set()

    return "jobs", "pandaid", [row.id for row in rows], paused_tasks.run, lambda: left() or _none(other)


def _none(job: Job) -> set[int]:
    assert Job.objects.get(pk=job.pk).status == "assigned"
    return set()


def keys(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    old = timezone.now() - OLD
    rows = [SubmissionKey.objects.create(caller="ada", key=str(n), fingerprint=b"", created=old) for n in range(2)]
    new = SubmissionKey.objects.create(caller="ada", key="new", fingerprint=b"")
    left = lambda: set(SubmissionKey.objects.exclude(pk=new.pk).values_list("id", flat=True))  # noqa: E731
    return "submission_keys", "id", [row.id for row in rows], idempotency._clean, left


def samples(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    old, now = timezone.now() - OLD, timezone.now()
    rows = [Sample.objects.create(site=f"S{n}", at=old) for n in range(2)]
    new = Sample.objects.create(site="S0", at=now)
    left = lambda: set(Sample.objects.exclude(pk=new.pk).values_list("id", flat=True))  # noqa: E731
    before = now - timedelta(days=1)
    return "samples", "id", [row.id for row in rows], lambda: sampling.forget(before, before, 9), left


def decisions(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    for _ in range(2):
        records.keep(
            records.Decided(make_task().id, Verdict((), (Skip("B", "site_offline", "{}", ("offline",)),)), None)
        )
    left = lambda: set(VerdictRecord.objects.filter(repeats__gt=F("counted")).values_list("id", flat=True))  # noqa: E731
    return "verdicts", "id", sorted(left()), records.fold, left


def orders(make_task: Make, make_job: Make) -> tuple[Any, ...]:
    for name in ("harvester", "another"):
        harvester.check_in(name, by="op")
    rows = [_order("harvester") for _ in range(2)]
    other = _order("another")
    left = lambda: set(HarvesterCommand.objects.filter(status="new").exclude(pk=other).values_list("pk", flat=True))  # noqa: E731
    return "harvester_commands", "command_id", rows, lambda: harvester.acquire("harvester", 9, by="op"), left


def _order(instance: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO harvester_commands (harvester_id, command, params, ack_requested, status, actor)
               VALUES (%s, 'KILL_WORKERS', '{}', true, 'new', 't') RETURNING command_id""",
            [instance],
        )
        return int(cursor.fetchone()[0])


SKIPPING = [
    reports,
    ends,
    old_jobs,
    left_claims,
    commands,
    inbox_rows,
    mails,
    alerts,
    changes,
    expired,
    silent,
    queued,
    of_paused,
    keys,
    samples,
    decisions,
    orders,
]


@pytest.mark.parametrize("scene", SKIPPING, ids=lambda scene: scene.__name__)
def test_what_another_process_has_is_passed_over_and_comes_later(scene: Make, make_task: Make, make_job: Make) -> None:
    table, key, ids, work, left = scene(make_task, make_job)
    held, free = sorted(ids)
    assert left() == {held, free}
    skips((table, key, held), work)
    assert left() == {held}
    work()
    assert left() == set()


def test_progress_is_booked_where_the_row_is_free(make_task: Make, make_dataset: Make) -> None:
    held, free = make_task(status="running", progress=0), make_task(status="running", progress=0)
    for one in (held, free):
        make_dataset(one, files=4, files_to_be_used=4, files_used=4, files_finished=2)
    skips(of_task(held.id), task_progress.book_progress)
    assert (task(held.id).progress, task(free.id).progress) == (0, 50)


def test_a_forecast_is_booked_where_the_row_is_free(make_task: Make, make_dataset: Make, make_job: Make) -> None:
    held, free = (make_task(status="running") for _ in range(2))
    for one in (held, free):
        make_dataset(one, files=4, files_to_be_used=4, files_used=4, files_finished=2)
        make_job(status="failed", task_id=one.id)
    skips(of_task(held.id), lambda: task_progress.book_forecasts(timezone.now()))
    assert (task(held.id).failure_rate, task(free.id).failure_rate) == (None, 100)


def test_a_new_measurement_is_asked_for_where_the_row_is_free(make_task: Make, make_job: Make) -> None:
    held, free = (make_task(status="running", walltime_unit="s") for _ in range(2))
    for one in (held, free):
        for _ in range(scouts.MEASURE_AGAIN_AT[0]):
            make_job(status="finished", task_id=one.id)
    skips(of_task(held.id), measuring_again.ask_again)
    assert (task(held.id).walltime_unit, task(free.id).walltime_unit) == ("s", None)


def test_old_messages_go_where_nobody_has_them(make_task: Make) -> None:
    past = timezone.now() - OLD
    rows = [
        OutMessage.objects.create(topic="t", kind="k", payload={}, created=past, sent=past, position=n)
        for n in (1, 2, 3)
    ]
    OutMessage.objects.update(created=past)
    skips(("messages_out", "id", rows[0].id), old_messages.run)
    assert list(OutMessage.objects.values_list("id", flat=True)) == [rows[0].id, rows[2].id]


def test_one_publisher_gives_places_at_a_time(make_task: Make) -> None:
    OutMessage.objects.all().delete()
    OutMessage.objects.create(topic="t", kind="k", payload={})

    def place() -> int:
        return publishing.place(9)

    with another() as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [publishing.LOCK_ID])
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '200ms'")
        try:
            with pytest.raises(Exception, match="lock timeout"):
                place()
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")
    assert place() == 1


def test_a_task_that_is_ended_at_this_moment_is_not_ended_again(make_task: Make) -> None:
    made = make_task(status="toabort")
    ((_, fence),) = claims.claim_tasks("slow", ["toabort"], 1)
    freed = "UPDATE jedi_tasks SET fence = fence + 1 WHERE jeditaskid = %s"
    with pytest.raises(claims.LostClaimError):
        waits(of_task(made.id), lambda: finishing.finish(made.id, fence), then=freed, values=[made.id])
    assert task(made.id).status == "toabort"


def test_a_command_is_obeyed_in_the_state_that_the_task_has_by_then(make_task: Make) -> None:
    made = make_task(status="ready")
    command = Command.objects.create(task=made, name="pause", owner="ada")
    ended = "UPDATE jedi_tasks SET status = 'done' WHERE jeditaskid = %s"
    assert waits(of_task(made.id), obeying.obey_next, then=ended, values=[made.id])
    command.refresh_from_db()
    assert command.status == "refused" and "is done; it has ended; nothing to pause" in (command.answer or "")
    assert task(made.id).status == "done"


# --- merging


def waiting_for_merge() -> tuple[int, list[Job]]:
    made = merging_task(files=2)
    settle()
    first_jobs(Pilot())
    final_reports.book_reports()
    assert states(made) == {"merging": 2}
    return made, merge_jobs(made) or list(Job.objects.filter(task_id=made).order_by("id"))


def test_merge_jobs_are_not_made_while_somebody_else_has_the_task() -> None:
    made, _ = waiting_for_merge()
    skips(of_task(made), merger.run)
    assert not merge_jobs(made)
    merger.run()
    assert len(merge_jobs(made)) == 1


def test_outputs_of_a_job_that_is_ended_at_this_moment_are_not_merged() -> None:
    made, producers = waiting_for_merge()
    ended = "UPDATE jobs SET jobstatus = 'closed' WHERE pandaid = %s"

    def make() -> Any:
        with hot_cursor() as cursor, transaction.atomic():
            logs = [file for file in _logs(made)]
            return mergejobs._lock_producers(cursor, logs)

    found = waits(of_job(producers[0].id), make, then=ended, values=[producers[0].id])
    assert found == {producers[1].id: "SITE_A"}


def _logs(task_id: int) -> list[Any]:
    task_row = Task.objects.select_related("job_params_template").get(pk=task_id)
    merge = mergejobs.read_merge(task_row, timezone.now())
    with hot_cursor() as cursor:
        return list(mergejobs.pick(cursor, task_id, merge.unmerged[mergejobs.MASTER], 100).files)


def test_the_sentence_on_a_task_is_left_alone_while_somebody_has_it(make_task: Make) -> None:
    made = make_task(status="running")
    said = mergejobs.Made(0, (Skip("A", "site_offline", "it is {}", ("offline",)),))
    skips(of_task(made.id), lambda: merge_turns._say(made.id, said))
    assert task(made.id).error_dialog is None
    merge_turns._say(made.id, said)
    assert (task(made.id).error_dialog or "").startswith(merge_turns.WAITS)


# --- messages of other systems


def staging_scene(make_task: Make, make_dataset: Make) -> tuple[Task, Dataset]:
    """A dataset with files in all states, beside another dataset and another task with files that are staging."""
    made, other = make_task(), make_task()
    data, beside = make_dataset(made, name="a:one"), make_dataset(made, name="a:two")
    elsewhere = make_dataset(other, name="a:one")
    for dataset in (data, beside, elsewhere):
        for status in ("staging", "staging", "ready", "running", "finished", "pending", "missing"):
            number = File.objects.count()
            File.objects.create(
                task_id=dataset.task_id, dataset_id=dataset.id, lfn=f"f{number % 7}", status=status, type="input"
            )
    return made, data


def staged(dataset: Dataset) -> list[str]:
    return list(File.objects.filter(dataset_id=dataset.id).order_by("id").values_list("status", flat=True))


@pytest.mark.parametrize(("names", "now_pending"), [(None, 2), (["f1", "f2", "f4"], 1)])
def test_only_files_that_are_staging_of_the_dataset_that_is_meant_are_staged(
    make_task: Make, make_dataset: Make, names: list[str] | None, now_pending: int
) -> None:
    made, data = staging_scene(make_task, make_dataset)
    with transaction.atomic():
        said = effects._files_staged({"task_id": made.id, "dataset": "a:one", "files": names}, "test")
    assert said == ("1 file is staged" if now_pending == 1 else f"{now_pending} files are staged")
    first = "staging" if names else "pending"
    assert staged(data) == [first, "pending", "ready", "running", "finished", "pending", "missing"]
    for other in Dataset.objects.exclude(pk=data.pk):
        assert staged(other) == ["staging", "staging", "ready", "running", "finished", "pending", "missing"]


def test_datasets_are_locked_before_their_files_and_in_order(make_task: Make, make_dataset: Make) -> None:
    made, data = staging_scene(make_task, make_dataset)
    file = File.objects.filter(dataset_id=data.id, status="staging").earliest("id")

    def stage() -> str:
        with transaction.atomic():
            return effects._files_staged({"task_id": made.id, "dataset": "a:one", "files": None}, "test")

    row = ("jedi_datasets", "datasetid", data.id)
    assert waits(row, stage, free=("jedi_dataset_contents", "fileid", file.id)) == "2 files are staged"


def test_datasets_that_are_to_be_looked_at_are_locked_in_order(make_task: Make, make_dataset: Make) -> None:
    made = make_task()
    low, high = make_dataset(made, name="low"), make_dataset(made, name="high")
    Dataset.objects.filter(pk=low.id).update(
        name="moved", state_check_time=timezone.now()
    )  # behind the other on the disk
    free = ("jedi_datasets", "datasetid", high.id)
    waits(("jedi_datasets", "datasetid", low.id), lambda: effects._look_at([high.id, low.id]), free=free)


def test_a_job_that_ends_at_this_moment_is_not_killed_by_a_message(make_job: Make) -> None:
    job = make_job(status="running")

    def kill() -> str:
        with transaction.atomic():
            return effects._job_command({"job_id": job.id, "reason": ""}, "test")

    ended = "UPDATE jobs SET jobstatus = 'finished' WHERE pandaid = %s"
    assert waits(of_job(job.id), kill, then=ended, values=[job.id]) == f"job {job.id} is finished already"


def test_a_kick_of_the_feeder_makes_it_look_at_what_grows_of_that_task(make_task: Make, make_dataset: Make) -> None:
    made, now = make_task(next_check=timezone.now() + timedelta(hours=1)), timezone.now()
    growing = make_dataset(made, name="grows", state="mutable", state_check_time=now)
    others = [
        make_dataset(made, name="closed", state="closed", state_check_time=now),
        make_dataset(made, name="out", type="output", state="mutable", state_check_time=now),
        make_dataset(make_task(), name="grows", state="mutable", state_check_time=now),
    ]
    effects._kick({"task_id": made.id, "agent": "feeder"}, "test")
    growing.refresh_from_db()
    assert growing.state_check_time is not None and growing.state_check_time.year == 1970
    assert {Dataset.objects.get(pk=other.pk).state_check_time for other in others} == {now}
    assert task(made.id).next_check <= timezone.now()
