"""The outbox and the inbox: told once, in order, in the transaction of the change; obeyed once, whatever is killed when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from tasks_app.agents import feeder, job_generator, message_processor, messages, refiner
from tasks_app.agents.watchdogs import old_messages
from tasks_app.lifecycle import bus as buses
from tasks_app.lifecycle import task_moves
from tasks_app.lifecycle.bus import BusError, Message
from tasks_app.messaging import effects, inbox
from tasks_app.models import Command, Dataset, File, InMessage, OutMessage, Task, TaskStatusLog
from tasks_app.submission import command_queue
from tests.flow.driving import (
    add_dataset,
    add_files,
    agents_turn,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")
NOW = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)


def one_task(name: str = "lab.t", files: int = 2, **more: Any) -> int:
    add_dataset(f"{name}.in", files)
    return submit(parameters(name, reads(f"{name}.in"), **{"nFilesPerJob": 1, "maxAttempt": 1, **more}))


def told(task_id: int, kind: str = "task_status") -> list[str]:
    found = OutMessage.objects.filter(task_id=task_id, kind=kind).order_by("id")
    return [row.payload["status"] for row in found]


# --- outbox


def test_each_change_of_a_task_is_told_once_and_in_order() -> None:
    made = one_task()
    drive(Pilot())
    log = list(TaskStatusLog.objects.filter(task_id=made).order_by("id").values_list("status", flat=True))
    assert told(made) == log and log[-1] == "done"
    first = OutMessage.objects.filter(task_id=made).earliest("id")
    assert {
        "msg_type": "task_status",
        "taskid": made,
        "status": "registered",
        "oldstatus": None,
    }.items() <= first.payload.items()
    assert (first.topic, first.owner) == ("jedi.tasks", "ada")


def test_a_change_that_is_rolled_back_is_not_told() -> None:
    made = one_task()
    before = told(made)

    class Crash(Exception):
        pass

    with pytest.raises(Crash), transaction.atomic():
        task_moves.move_task(made, "pending", by="test", reason="never")
        raise Crash
    assert told(made) == before


def test_jobs_are_told_of_only_where_the_task_wants_it() -> None:
    quiet, loud = one_task("lab.q"), one_task("lab.l", pushStatusChanges=True)
    drive(Pilot(failing_on("lab.l.in.00000")))
    assert told(quiet, "job_status") == []
    made = [job.id for job in jobs(loud)]
    rows = list(OutMessage.objects.filter(kind="job_status").order_by("job_id", "id"))
    assert [(row.job_id, row.payload["status"]) for row in rows] == [
        (made[0], "activated"),
        (made[0], "failed"),
        (made[1], "activated"),
        (made[1], "finished"),
    ]
    assert (
        rows[0].payload.items()
        >= {"msg_type": "job_status", "jobid": made[0], "taskid": loud, "computingsite": "SITE_A"}.items()
    )


def test_positions_are_without_gap_and_of_one_task_in_the_order_of_its_changes() -> None:
    made = one_task()
    messages.run(now=NOW)
    drive(Pilot())
    messages.run(now=NOW)
    rows = OutMessage.objects.order_by("position")
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert [r.payload["status"] for r in rows.filter(task_id=made)] == told(made)
    assert {row.sent for row in rows} == {NOW}


def test_a_message_that_is_committed_late_comes_behind_what_was_read_before_it() -> None:
    """Its id is lower, but a consumer who has read past it must not miss it."""
    first, second = one_task("lab.a"), one_task("lab.b")
    messages.run(now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('messages_out', 'id'))")
        early = cursor.fetchone()[0]
    task_moves.move_task(second, "pending", by="test", error_dialog="it waits")
    messages.run(now=NOW)
    read = OutMessage.objects.order_by("position").last()
    assert read is not None and read.task_id == second
    OutMessage.objects.create(id=early, topic="jedi.tasks", kind="other", task_id=first, payload={"status": "late"})
    messages.run(now=NOW)
    late = OutMessage.objects.get(pk=early)
    assert late.position is not None and read.position is not None
    assert late.id < read.id and late.position > read.position


class Broker:
    """A bus that keeps what it gets, and refuses when told to."""

    name = "test broker"

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.down = False
        self.dies = False

    def publish(self, messages: Sequence[Message]) -> None:
        assert not connection.in_atomic_block, "a transaction is open while the outside is spoken to"
        if self.down:
            raise BusError("nobody answers")
        self.got += messages
        if self.dies:
            raise KeyboardInterrupt


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    new = Broker()
    monkeypatch.setattr(buses, "_bus", new)
    return new


def test_a_bus_that_is_down_gets_the_same_messages_later_in_their_order(broker: Broker) -> None:
    made = one_task()
    broker.down = True
    assert "nobody answers" in messages.run(now=NOW).note
    row = OutMessage.objects.get(task_id=made)
    assert (row.sent, row.attempts, row.error) == (None, 1, "nobody answers")
    settle()
    broker.down = False
    messages.run(now=NOW)
    assert [m.payload["status"] for m in broker.got] == told(made)
    assert [m.position for m in broker.got] == sorted(m.position for m in broker.got)
    assert not OutMessage.objects.filter(sent=None).exists()
    assert not OutMessage.objects.exclude(error="").exists()


def test_a_publisher_that_is_killed_after_sending_sends_again_under_the_same_ids(broker: Broker) -> None:
    one_task()
    broker.dies = True
    with pytest.raises(KeyboardInterrupt):
        messages.run(now=NOW)
    broker.dies = False
    messages.run(now=NOW)
    assert len(broker.got) == 2
    assert broker.got[0] == broker.got[1]


def test_two_publishers_give_each_message_one_place(broker: Broker) -> None:
    made = one_task()
    for number in range(60):
        task_moves.move_task(made, "paused" if number % 2 == 0 else "registered", by="test")
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        while messages.run(limit=10, now=NOW).items:
            pass
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = list(OutMessage.objects.order_by("position"))
    assert [row.position for row in rows] == list(range(1, 62))
    assert [row.id for row in rows] == sorted(row.id for row in rows)
    assert {m.message_id for m in broker.got} == {row.message_id for row in rows}


def test_old_messages_are_deleted_but_the_last_place_is_kept() -> None:
    made = one_task()
    drive(Pilot())
    messages.run(now=NOW)
    last = len(told(made))
    assert old_messages.run(now=NOW + timedelta(days=29)).items == 0
    assert old_messages.run(now=NOW + timedelta(days=31)).items >= last - 1
    assert list(OutMessage.objects.values_list("position", flat=True)) == [last]
    one_task("lab.b")
    messages.run(now=NOW)
    assert OutMessage.objects.latest("id").position == last + 1


# --- the feed


def feed(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v2/messages/", query)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def test_a_consumer_follows_the_feed_and_sees_its_own_tasks_only(api: Callable[..., Client]) -> None:
    made = one_task(pushStatusChanges=True)
    assert feed(api()) == [], "what has no place yet is not shown"
    messages.run(now=NOW)
    (first,) = feed(api())
    assert (first["payload"]["status"], first["position"]) == ("registered", 1)
    drive(Pilot())
    messages.run(now=NOW)
    later = feed(api(), after=first["position"], topic="jedi.tasks", page_size=100)
    assert [m["payload"]["status"] for m in later] == told(made)[1:]
    assert {m["kind"] for m in feed(api(), topic="jedi.jobs")} == {"job_status"}
    assert feed(api("user", name="eve")) == []
    assert len(feed(api("shifter"))) == len(feed(api())) == len(feed(api("production")))
    assert api().get("/api/v2/messages/", {"after": "x"}).status_code == 422


# --- inbox


def tell(message_id: str, kind: str, **payload: Any) -> InMessage:
    return inbox.receive(message_id, kind, payload, sender="worker:test")[0]


def again(row: InMessage) -> InMessage:
    row.refresh_from_db()
    return row


def test_a_command_is_given_once_however_often_its_message_comes() -> None:
    made = one_task()
    settle()
    for _ in range(3):
        tell("m1", "task_command", task_id=made, command="pause", reason="maintenance")
        message_processor.run()
    row = InMessage.objects.get()
    assert (row.answer, row.attempts, row.error) == (f"pause was given to task {made}", 1, "")
    given = Command.objects.get()
    assert (given.owner, given.comment) == ("worker:test", "maintenance")
    settle()
    assert status(made) == "paused"


def test_an_id_that_comes_again_with_other_content_is_refused() -> None:
    made = one_task()
    tell("m1", "kick", task_id=made, agent="feeder")
    with pytest.raises(inbox.OtherContentError, match="m1 has already arrived with other content"):
        tell("m1", "kick", task_id=made, agent="job_generator")


@pytest.mark.parametrize(
    ("kind", "payload", "field"),
    [
        ("dance", {}, "kind"),
        ("kick", {"agent": "feeder"}, "payload.task_id"),
        ("kick", {"agent": "feeder", "task_id": True}, "payload.task_id"),
        ("kick", {"agent": "adder", "task_id": 1}, "payload.agent"),
        ("kick", {"agent": "feeder", "task_id": 1, "x": 1}, "payload.x"),
        ("task_command", {"command": "explode", "task_id": 1}, "payload.command"),
        ("task_command", {"command": "reassign", "task_id": 1}, "payload.parameters.site"),
        (
            "task_command",
            {"command": "reassign", "task_id": 1, "parameters": {"nucleus": 5}},
            "payload.parameters.nucleus",
        ),
        ("task_command", {"command": "finish", "task_id": 1, "parameters": {"x": 1}}, "payload.parameters.x"),
        ("files_staged", {"task_id": 1, "files": "a,b"}, "payload.files"),
        ("dataset_changed", {"dataset": ""}, "payload.dataset"),
        ("kick", [], "payload"),
    ],
)
def test_a_message_that_can_never_be_processed_is_refused_and_names_the_field(
    kind: str, payload: Any, field: str
) -> None:
    with pytest.raises(inbox.BadMessageError) as caught:
        inbox.receive("m1", kind, payload, sender="test")
    assert caught.value.field == field
    assert not InMessage.objects.exists()


def test_what_fails_is_tried_again_later_and_then_parked_with_its_error() -> None:
    row = tell("m1", "kick", task_id=77, agent="feeder")
    now, waits = NOW, []
    for attempt in range(1, inbox.ATTEMPTS + 1):
        assert message_processor.run(now=now).items == 1
        assert message_processor.run(now=now).items == 0, "it rests before it is tried again"
        again(row)
        assert (row.attempts, row.error) == (attempt, "there is no task 77")
        waits.append((row.next_try - now).total_seconds())
        now = row.next_try
    assert waits[:4] == [30, 60, 120, 240] and row.parked is not None
    assert message_processor.run(now=now + timedelta(days=1)).items == 0
    made = submit(parameters("lab.t", reads("lab.in")))
    InMessage.objects.filter(pk=row.pk).update(payload={"task_id": made, "agent": "feeder"})
    assert inbox.try_again([row.id]) == 1
    message_processor.run()
    assert again(row).processed and not row.error


def test_a_task_that_refuses_a_command_now_may_take_it_later() -> None:
    made = one_task()
    settle()
    row = tell("m1", "task_command", task_id=made, command="resume")
    message_processor.run(now=NOW)
    assert "resume is accepted in" in again(row).error and row.parked is None
    command_queue.give_command(made, "pause", by="ada")
    settle()
    message_processor.run(now=row.next_try)
    assert again(row).processed
    settle()
    assert status(made) == "running"


def test_a_command_by_message_names_a_site_that_is_there() -> None:
    made = one_task()
    settle()
    row = tell("m1", "task_command", task_id=made, command="reassign", parameters={"site": "NOWHERE"})
    message_processor.run(now=NOW)
    assert "NOWHERE" in again(row).error and row.parked is None and row.processed is None
    assert not Command.objects.exists() and status(made) == "running"


def test_a_processor_that_is_killed_leaves_nothing_behind_and_the_next_does_it_once(monkeypatch: Any) -> None:
    made = one_task()
    settle()
    row = tell("m1", "task_command", task_id=made, command="pause")
    real = effects.EFFECTS["task_command"]

    def killed(given: Any, sender: str) -> str:
        real(given, sender)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "EFFECTS", {**effects.EFFECTS, "task_command": killed})
        with pytest.raises(KeyboardInterrupt):
            message_processor.run()
    assert not Command.objects.exists() and again(row).attempts == 0
    message_processor.run()
    assert Command.objects.count() == 1 and again(row).processed


def test_two_processors_share_the_work_and_do_nothing_twice() -> None:
    made = one_task()
    settle()
    Task.objects.filter(pk=made).update(split_rule="WH=1")  # there is something to release
    for number in range(20):
        tell(f"m{number}", "task_command", task_id=made, command="release")
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        message_processor.run()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert InMessage.objects.filter(processed__isnull=False, attempts=1).count() == 20
    assert Command.objects.count() == 20


def test_a_job_is_killed_by_a_message_and_a_job_that_has_ended_is_left_alone() -> None:
    made = one_task(files=2)
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    waiting = next(j.id for j in jobs(made) if j.id != job["PandaID"])
    rows = [tell(f"m{j}", "job_command", job_id=j, command="kill") for j in (waiting, job["PandaID"])]
    message_processor.run()
    assert [again(row).answer.partition(": ")[2] for row in rows] == [
        "1 ended, 0 pilots were told to stop",
        "0 ended, 1 pilot was told to stop",
    ]
    assert pilot.end(job, "failed") is not None
    drive(pilot)
    late = tell("late", "job_command", job_id=waiting, command="kill")
    message_processor.run()
    assert "already" in again(late).answer


def test_a_kick_ends_the_rest_of_a_task() -> None:
    made = one_task()
    refiner.run()
    feeder.run()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jedi_tasks SET next_check_at = clock_timestamp() + interval '1 hour'")
    assert job_generator.run().items == 0
    row = tell("m1", "kick", task_id=made, agent="jedi_job_generator")
    message_processor.run()
    assert again(row).answer == f"job_generator will handle task {made}, which is ready"
    assert job_generator.run().items == 2


def test_a_dataset_that_changed_is_looked_at_before_its_time() -> None:
    add_dataset("lab.in", 1, open=True)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, runUntilClosed=True))
    for _ in range(3):
        agents_turn()
    add_files("lab.in", [1])
    feeder.run()
    assert Dataset.objects.get(task_id=made, type="input").files == 1
    tell("m1", "dataset_changed", dataset="lab.in")
    message_processor.run()
    feeder.run()
    assert Dataset.objects.get(task_id=made, type="input").files == 2
    assert InMessage.objects.get().answer == "1 growing input is looked at"


def test_files_that_are_staged_wait_for_the_feeder_to_make_bunches_of_them() -> None:
    made = one_task(files=3)
    refiner.run()
    feeder.run()
    with transaction.atomic():
        File.objects.filter(task_id=made, type="input").update(status="staging")
        tell("m1", "files_staged", task_id=made, files=["lab.t.in.00000", "lab.t.in.00002"])
        message_processor.run()
        found = File.objects.filter(task_id=made, type="input").order_by("lfn").values_list("status", flat=True)
        assert list(found) == ["pending", "staging", "pending"]
        transaction.set_rollback(True)


# --- the door


def test_the_door_takes_messages_of_trusted_systems_once(api: Callable[..., Client]) -> None:
    made = one_task()
    settle()
    body = {"id": "ID:host-1:2", "kind": "kick", "payload": {"agent": "feeder", "task_id": made}}
    first = api("worker").post("/api/v2/messages/", body, content_type="application/json")
    assert (first.status_code, first.json()["state"]) == (202, "waiting")
    message_processor.run()
    second = api("worker").post("/api/v2/messages/", body, content_type="application/json")
    assert (second.status_code, second.json()["state"]) == (200, "processed")
    other = {**body, "payload": {"agent": "job_generator", "task_id": made}}
    assert api("worker").post("/api/v2/messages/", other, content_type="application/json").status_code == 409
    wrong = {**body, "id": "x", "payload": {"agent": "feeder"}}
    answer = api("worker").post("/api/v2/messages/", wrong, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "payload.task_id")


def test_a_worker_may_not_command_tasks_through_messages(api: Callable[..., Client]) -> None:
    made = one_task()
    body = {"id": "m1", "kind": "task_command", "payload": {"task_id": made, "command": "kill"}}
    assert api("worker").post("/api/v2/messages/", body, content_type="application/json").status_code == 403
    assert api("production").post("/api/v2/messages/", body, content_type="application/json").status_code == 202
    assert api().post("/api/v2/messages/", {**body, "id": "m2"}, content_type="application/json").status_code == 403
    assert task(made).status != "aborting"
