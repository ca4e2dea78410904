"""The door through which people and agents change the status of a queue, and the end of what was set for a time.

Triggers of the table write the history (`QueueStatusLog`), so that a change by any other way is in it as well. What they
cannot know, who changes a status and until when, is said in the transaction: see `history_says`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from brokerage_app.models import Queue, QueueStatusLog
from jedisite import audit
from jedisite.vocabulary.words import on_one_line, rather

LONGEST_REASON = 500
LONGEST_TIME = timedelta(days=366)
ENDED_BY = "queue_status"
"""The agent that ends what was set for a time."""
LIMIT = 500


class QueueStatusError(ValueError):
    """A status that cannot be set: `field` (queue, status, reason or until) and a sentence."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def no_queue(name: str) -> str:
    """The sentence on a name that no queue has; "" if a queue has it."""
    names = list(Queue.objects.values_list("name", flat=True))
    return "" if name in names else rather(f"There is no queue {name[:60]!r}", name, names, most=12)


@contextmanager
def history_says(**words: Any) -> Iterator[None]:
    """Within a transaction: gives the history of status changes made inside. Keys: by, reason, at, until, after."""
    text = json.dumps({key: value for key, value in words.items() if value}, default=str)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('jedi.queue_status', %s, true)", [text])
        yield
        cursor.execute("SELECT set_config('jedi.queue_status', '', true)")


@transaction.atomic
def set_status(
    queue: str, status: str, *, by: str, reason: str, until: datetime | None = None, now: datetime
) -> QueueStatusLog:
    """Give a queue a status, until a time or until somebody changes it, and return the row of its history.

    A status with an end is followed by the lasting one that it was put upon. It also outlives descriptions that are imported
    meanwhile; a lasting one does not. Raises QueueStatusError, and then writes nothing.
    """
    reason = on_one_line(reason)
    check(status, reason, until, now)
    row = None if "\x00" in queue else Queue.objects.select_for_update().filter(name=queue).first()
    if row is None:
        raise QueueStatusError("queue", f"There is no queue {queue[:128]!r}.")
    holds = QueueStatusLog.objects.filter(queue=queue, ended_at=None).first()
    if status == row.status and until == (holds.until if holds else None):
        end = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        raise QueueStatusError("status", f"{queue} is {status}{end} already.")
    lasting = holds.after if holds and holds.until else row.status
    after = lasting if until else ""
    before, row.status, row.status_reason = row.status, status, reason
    with history_says(by=by[:128], reason=reason, at=now, until=until, after=after):
        row.save(update_fields=["status", "status_reason", "last_update"])
        if before == status:  # only its end is new: the trigger has seen no change
            _moved(queue, before, status)
    details = {"status": [before, status]} | ({"until": until.isoformat(), "after": after} if until else {})
    audit.record(by, "queue.status", "queue", queue, reason=reason, details=details)
    return QueueStatusLog.objects.get(queue=queue, ended_at=None)


def check(status: str, reason: str, until: datetime | None, now: datetime) -> None:
    """Raises QueueStatusError for a status, reason or time that cannot be set."""
    if status not in Queue.STATUSES:
        raise QueueStatusError(
            "status", f"{status[:30]!r} is not a status; choose one of: {', '.join(Queue.STATUSES)}."
        )
    if not reason:
        raise QueueStatusError("reason", "Give a reason: all who look at the queue see it.")
    if len(reason) > LONGEST_REASON or "\x00" in reason:
        raise QueueStatusError("reason", f"A reason has at most {LONGEST_REASON} characters and no U+0000.")
    if until is not None and not now < until <= now + LONGEST_TIME:
        days = LONGEST_TIME.days
        raise QueueStatusError("until", f"{until:%Y-%m-%d %H:%M} UTC is not within the next {days} days.")


def _moved(queue: str, old: str, new: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT queue_status_moved(%s, %s, %s, '')", [queue, old, new])


END = """
WITH due AS (SELECT l.queue, l.after, format('%%s of %%s ended at its time (%%s)', l.new, l.by, l.reason) AS words
               FROM queue_status_log l WHERE l.queue = ANY(%(names)s) AND l.ended_at IS NULL)
UPDATE queues q SET status = due.after, status_reason = due.words, last_update = %(now)s FROM due WHERE q.name = due.queue
"""


@transaction.atomic
def end_due(now: datetime, limit: int = LIMIT) -> list[str]:
    """End every status whose time is over. Returns the names of the queues."""
    due = QueueStatusLog.objects.filter(ended_at=None, until__lte=now).order_by("until").values("queue")[:limit]
    locked = Queue.objects.select_for_update(skip_locked=True).filter(
        name__in=list(due.values_list("queue", flat=True))
    )
    names = list(locked.order_by("name").values_list("name", flat=True))
    # Read again under the lock: somebody may have given a queue another status meanwhile.
    still = QueueStatusLog.objects.filter(queue__in=names, ended_at=None, until__lte=now).order_by("queue")
    names = list(still.values_list("queue", flat=True))
    if names:
        with history_says(by=ENDED_BY, at=now), connection.cursor() as cursor:
            cursor.execute(END, {"names": names, "now": now})
            for row in still:  # those that went back to the same status: the trigger has seen no change
                _moved(row.queue, row.new, row.after)
    return names


def keep_held(rows: Iterable[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Columns of queues as an import is to write them: a status that holds for a time stays, and the new one follows it.

    Call inside the transaction of the import.
    """
    found = list(rows)
    names = [row["name"] for row in found]
    # The queues are locked first, as everywhere: locking their history before them could end in a deadlock.
    list(Queue.objects.select_for_update().filter(name__in=names).order_by("name").values_list("name"))
    holding = QueueStatusLog.objects.filter(queue__in=names, ended_at=None, until__gt=now)
    held = {row.queue: row for row in holding}
    kept = []
    for row in found:
        holds = held.get(row["name"])
        if holds is not None:
            QueueStatusLog.objects.filter(pk=holds.pk).update(after=row["status"])
            row = {**row, "status": holds.new, "status_reason": holds.reason}
        kept.append(row)
    return kept
