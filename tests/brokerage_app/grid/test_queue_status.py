"""The status of queues: its door, its history whatever changes it, and the end of what was set for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from brokerage_app.agents.queue_status import run
from brokerage_app.grid.cric import describe
from brokerage_app.grid.grid_storing import store
from brokerage_app.grid.queue_status import QueueStatusError, end_due, set_status
from brokerage_app.models import Queue, QueueStatusLog
from jedisite.models import AuditEntry

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def history(queue: str = "A") -> list[tuple[str, str, str]]:
    return list(QueueStatusLog.objects.filter(queue=queue).order_by("id").values_list("old", "new", "by"))


def status(queue: str = "A") -> str:
    return Queue.objects.get(name=queue).status


def imported(status: str, now: datetime) -> None:
    store(describe({"queues": {"A": {"pandasite": "S", "status": status}}}), now)


def test_every_way_to_change_a_status_is_in_the_history() -> None:
    Queue.objects.create(name="A", site_name="S")
    Queue.objects.bulk_create([Queue(name="B", site_name="S", status="test")])
    with transaction.atomic():
        row = set_status("A", "offline", by="ada", reason=" power cut ", now=NOW)
        Queue.objects.filter(name="B").update(status="paused")  # in the same transaction, but not by ada
    assert (row.queue, row.old, row.new, row.reason, row.by, row.at) == (
        "A",
        "online",
        "offline",
        "power cut",
        "ada",
        NOW,
    )
    assert Queue.objects.get(name="A").status_reason == "power cut"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queues SET status = 'online', cloud = 'X' WHERE name = 'A'")
        cursor.execute("UPDATE queues SET status = 'online', cloud = 'Y' WHERE name = 'A'")
    imported("brokeroff", NOW + HOUR)
    assert history() == [
        ("", "online", ""),
        ("online", "offline", "ada"),
        ("offline", "online", ""),
        ("online", "brokeroff", "import_sites"),
    ]
    assert history("B") == [("", "test", ""), ("test", "paused", "")]
    assert list(QueueStatusLog.objects.filter(queue="A", ended_at=None).values_list("new", flat=True)) == ["brokeroff"]
    Queue.objects.get(name="A").delete()
    assert not QueueStatusLog.objects.filter(queue="A", ended_at=None).exists() and len(history()) == 4
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.object_id, entry.reason) == ("ada", "queue.status", "A", "power cut")
    assert entry.details == {"status": ["online", "offline"]}


def test_a_status_for_a_time_is_followed_by_the_lasting_one_below_it() -> None:
    for name in ("A", "B", "C"):
        Queue.objects.create(name=name, site_name="S")
        set_status(name, "brokeroff", by="ada", reason="test beam", until=NOW + HOUR, now=NOW)
    set_status("A", "offline", by="bob", reason="worse", until=NOW + 2 * HOUR, now=NOW)
    set_status("B", "offline", by="bob", reason="for good", now=NOW)
    set_status("C", "brokeroff", by="bob", reason="longer", until=NOW + 3 * HOUR, now=NOW)
    assert end_due(NOW + HOUR) == []
    assert end_due(NOW + 2 * HOUR) == ["A"] and end_due(NOW + 2 * HOUR) == []
    row = Queue.objects.get(name="A")
    assert (row.status, row.status_reason) == ("online", "offline of bob ended at its time (worse)")
    assert history() == [
        ("", "online", ""),
        ("online", "brokeroff", "ada"),
        ("brokeroff", "offline", "bob"),
        ("offline", "online", "queue_status"),
    ]
    assert history("C")[-1] == ("brokeroff", "brokeroff", "bob")
    passed = run()
    assert (passed.items, status("B"), status("C")) == (1, "offline", "online")
    times = list(QueueStatusLog.objects.filter(queue="A").order_by("id").values_list("at", "ended_at"))
    assert [end for _, end in times[:-1]] == [at for at, _ in times[1:]] and times[-1][1] is None


def test_an_import_does_not_end_what_was_set_for_a_time_but_says_what_follows() -> None:
    imported("online", NOW)
    set_status("A", "offline", by="ada", reason="x", until=NOW + 2 * HOUR, now=NOW)
    imported("test", NOW + HOUR)
    assert (status(), Queue.objects.get().status_reason) == ("offline", "x")
    end_due(NOW + 2 * HOUR)
    assert status() == "test"
    set_status(
        "A", "online", by="ada", reason="set to what it will be anyhow", until=NOW + 5 * HOUR, now=NOW + 3 * HOUR
    )
    imported("online", NOW + 4 * HOUR)
    end_due(NOW + 5 * HOUR)
    assert status() == "online" and history()[-1] == ("online", "online", "queue_status")
    assert not QueueStatusLog.objects.filter(ended_at=None, until__isnull=False).exists()


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"status": "broken"}, "status", "'broken' is not a status; choose one of: online"),
        ({"status": "online"}, "status", "A is online already"),
        ({"reason": " "}, "reason", "Give a reason"),
        ({"reason": "x" * 501}, "reason", "at most 500"),
        ({"until": NOW}, "until", "2026-01-02 12:00 UTC is not within the next 366 days"),
        ({"until": NOW + timedelta(days=400)}, "until", "not within"),
        ({"queue": "B"}, "queue", "There is no queue 'B'"),
        ({"queue": "\x00"}, "queue", "There is no queue"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(changes: dict[str, object], field: str, says: str) -> None:
    Queue.objects.create(name="A", site_name="S")
    values = {"queue": "A", "status": "offline", "by": "ada", "reason": "x", "now": NOW} | changes
    with pytest.raises(QueueStatusError, match=says) as caught:
        set_status(**values)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert status() == "online" and len(history()) == 1 and not AuditEntry.objects.exists()
