"""Notes and hand-overs are bounded, and a hand-over is acknowledged once, by somebody else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from tasks_app.models import Handover, ShiftNote
from tasks_app.models.shift import LONGEST_NOTE, LONGEST_SUMMARY
from tasks_app.shifts import logbook
from tasks_app.shifts.logbook import LogbookError

pytestmark = pytest.mark.django_db
NOW = timezone.now()
SINCE = NOW - timedelta(hours=8)


def test_a_note_keeps_its_lines_and_no_other_control_character() -> None:
    note = logbook.add_note(" one\r\ntwo\0\x1b[31m \u202e", by="ada", now=NOW)
    assert ShiftNote.objects.get(pk=note.pk).text == "one\ntwo[31m "


@pytest.mark.parametrize("text", ["", " \r\n ", "\0", "x" * (LONGEST_NOTE + 1)])
def test_a_note_that_is_empty_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(LogbookError) as refused:
        logbook.add_note(text, by="ada", now=NOW)
    assert refused.value.field == "text" and not ShiftNote.objects.exists()


def test_an_account_writes_so_many_notes_a_day() -> None:
    ShiftNote.objects.bulk_create(ShiftNote(by="ada", at=NOW, text="x") for _ in range(logbook.MOST_NOTES))
    with pytest.raises(LogbookError, match="200 notes in 24 hours"):
        logbook.add_note("one more", by="ada", now=NOW)
    logbook.add_note("of somebody else", by="bob", now=NOW)
    logbook.add_note("a day later", by="ada", now=NOW + timedelta(hours=25))


def test_an_account_hands_over_so_often_a_day() -> None:
    for _ in range(logbook.MOST_HANDOVERS):
        logbook.hand_over("x", SINCE, NOW, by="ada", now=NOW)
    with pytest.raises(LogbookError, match="20 times in 24 hours"):
        logbook.hand_over("x", SINCE, NOW, by="ada", now=NOW)


def test_a_hand_over_is_acknowledged_once_and_by_somebody_else() -> None:
    handover = logbook.hand_over("all is well", SINCE, NOW, by="ada", now=NOW)
    with pytest.raises(LogbookError, match="Somebody else"):
        logbook.acknowledge(handover.pk, by="ada")
    logbook.acknowledge(handover.pk, by="bob")
    with pytest.raises(LogbookError, match="bob acknowledged"):
        logbook.acknowledge(handover.pk, by="eve")
    handover.refresh_from_db()
    assert handover.acknowledged_by == "bob" and handover.acknowledged_at is not None
    with pytest.raises(Handover.DoesNotExist):
        logbook.acknowledge(handover.pk + 1, by="bob")


def test_a_summary_that_is_too_long_or_of_a_shift_to_come_is_refused() -> None:
    with pytest.raises(LogbookError, match="30000 characters"):
        logbook.hand_over("x" * (LONGEST_SUMMARY + 1), SINCE, NOW, by="ada", now=NOW)
    with pytest.raises(LogbookError, match="must have begun"):
        logbook.hand_over("x", NOW + timedelta(hours=1), NOW + timedelta(hours=2), by="ada", now=NOW)


def test_the_database_holds_that_an_acknowledgement_has_a_name_and_a_time() -> None:
    for values in ({"acknowledged_by": "bob"}, {"acknowledged_at": NOW}, {"since": NOW, "until": NOW}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Handover.objects.create(**{"by": "ada", "since": SINCE, "until": NOW, "summary": "x", **values})
