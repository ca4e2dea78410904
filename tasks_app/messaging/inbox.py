"""The inbox: messages of other systems are kept when they come, and processed once each, whatever is killed when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction

from jedisite.agents.passes import kick
from jedisite.processes.logs import sentence_of
from tasks_app.domain.message_kinds import BadMessageError, checked
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.messaging.effects import EFFECTS, NotThereError
from tasks_app.models import InMessage
from tasks_app.params import command_parameters
from tasks_app.params.faults import ParamErrors
from tasks_app.submission.command_queue import CommandRefusedError

log = structlog.get_logger(__name__)
ATTEMPTS = 5
FIRST_WAIT = timedelta(seconds=30)
"""Until a message that failed is tried again; doubled each time."""


class OtherContentError(ValueError):
    """The id of a message came before, with other content."""


def receive(message_id: str, kind: str, payload: Any, *, sender: str) -> tuple[InMessage, bool]:
    """Keep a message. Returns it and whether it is new; one that came before is the one that is there already.

    Raises BadMessageError when it can never be processed, OtherContentError when its id was used for something else.
    """
    _checked(kind, payload)
    with transaction.atomic():
        row, is_new = InMessage.objects.get_or_create(
            message_id=message_id, defaults={"kind": kind, "payload": payload, "sender": sender}
        )
        if not is_new and (row.kind, row.payload) != (kind, payload):
            raise OtherContentError(f"message {message_id} has already arrived with other content, from {row.sender}")
        if is_new:
            row.refresh_from_db()
            kick("message_processor")
    return row, is_new


def _checked(kind: str, payload: object) -> dict[str, Any]:
    """The payload with its known fields, and the parameters of a command. Raises BadMessageError, naming the field."""
    given = checked(kind, payload)
    if "command" in given and "parameters" in given:
        try:
            given["parameters"] = command_parameters.check(TaskCommand(given["command"]), given["parameters"] or {})
        except ParamErrors as exc:
            first = exc.errors[0]
            raise BadMessageError(f"payload.parameters.{first.field}"[:120], first.message) from exc
    return given


def process_next(now: datetime) -> bool:
    """Process the oldest message that is due, in one transaction with all its effects. Returns whether there was one.

    What fails leaves nothing behind but its error; it is tried again later, and parked after `ATTEMPTS` attempts.
    """
    with transaction.atomic():
        row = (
            InMessage.objects.select_for_update(skip_locked=True)
            .filter(processed=None, parked=None, next_try__lte=now)
            .order_by("id")
            .first()
        )
        if row is None:
            return False
        row.attempts += 1
        try:
            with transaction.atomic():
                row.answer = EFFECTS[row.kind](_checked(row.kind, row.payload), row.sender)
        except BadMessageError as exc:
            _failed(row, str(exc), now, for_good=True)
        except (CommandRefusedError, NotThereError, ParamErrors) as exc:
            _failed(row, str(exc), now)
        except Exception as exc:
            log.exception("inbox.failed", message=row.message_id, kind=row.kind)
            _failed(row, sentence_of(exc), now)
        else:
            row.processed, row.error = now, ""
        row.save(update_fields=["attempts", "answer", "error", "processed", "parked", "next_try"])
    return True


def _failed(row: InMessage, error: str, now: datetime, *, for_good: bool = False) -> None:
    row.error = error[:2000]
    if for_good or row.attempts >= ATTEMPTS:
        row.parked = now
    else:
        row.next_try = now + FIRST_WAIT * 2 ** (row.attempts - 1)


def try_again(ids: list[int]) -> int:
    """Take parked messages up again, with all their attempts. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE messages_in SET parked = NULL, attempts = 0, next_try = clock_timestamp()
                WHERE id IN (SELECT id FROM messages_in WHERE id = ANY(%s) AND parked IS NOT NULL ORDER BY id FOR UPDATE)""",
            [ids],
        )
        return int(cursor.rowcount)


def parked_messages() -> int:
    """Messages that are tried no more until somebody looks at them."""
    return InMessage.objects.filter(parked__isnull=False).count()
