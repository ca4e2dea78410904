"""Reads what a window of time holds: ten statements, whatever its length."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce

from jedisite import audit
from tasks_app.commands.act_words import kind_of, title_of
from tasks_app.domain.fingerprints import CAUSES
from tasks_app.domain.states import TaskStatus
from tasks_app.failures import failure_queries as asked
from tasks_app.failures.rules.spreads import Spread
from tasks_app.models import AttentionItem, Handover, JobFailure, ShiftNote, Task
from tasks_app.shifts.rules import shift_facts
from tasks_app.shifts.rules.sections import MOST_LINES, WATCHED
from tasks_app.shifts.rules.shift_facts import ShiftFacts

STOPPED: Final = (TaskStatus.EXHAUSTED, TaskStatus.BROKEN, TaskStatus.FAILED, TaskStatus.ABORTED)
WAITING: Final = (TaskStatus.PENDING, TaskStatus.THROTTLED)
WAITS_FOR: Final = timedelta(hours=2)
"""A task that is held up for so long is to be watched."""
BEFORE: Final = timedelta(hours=24)
"""Ended jobs of so long before the window are what it is compared with."""
MOST_TASKS, MOST_DEEDS, MOST_ITEMS = 2_000, 5_000, 300
SHOWN_NOTES, SHOWN_HANDOVERS = 50, 5
ELSEWHERE: Final = ("queue.status", "submit", "submit for")
"""Actions that the history of queues tells of, and what everybody does all day."""
OF_USERS: Final = ("task", "job", "workflow")
"""Kinds of things that users act on, too: what was done to others stands before them."""

_ERRORS = """
WITH counted AS MATERIALIZED (
    SELECT fingerprint_id, count(*) AS jobs, sum(wasted_core_s) AS wasted
      FROM job_failures WHERE ended >= %(since)s AND ended < %(until)s GROUP BY 1)
SELECT f.id, CASE WHEN f.component = '' THEN 'no error' ELSE f.component || ':' || f.code END, f.text, c.jobs, c.wasted,
       f.first_seen, f.known_until, f.ticket, f.cause,
       count(*) OVER (), count(*) FILTER (WHERE f.first_seen >= %(since)s) OVER (), sum(c.jobs) OVER ()
  FROM counted c JOIN error_fingerprints f ON f.id = c.fingerprint_id
 ORDER BY f.first_seen >= %(since)s DESC, c.wasted DESC, c.jobs DESC, f.id LIMIT %(most)s
"""
"""Kinds of failures, new ones first, then what cost most."""
_RATES = """
SELECT key,
       coalesce(sum(finished) FILTER (WHERE hour >= %(first)s), 0), coalesce(sum(failed) FILTER (WHERE hour >= %(first)s), 0),
       coalesce(sum(finished) FILTER (WHERE hour < %(first)s), 0), coalesce(sum(failed) FILTER (WHERE hour < %(first)s), 0)
  FROM job_ends WHERE dimension = 'site' AND hour >= %(before)s AND hour < %(until)s GROUP BY key
"""
_STOPPED = """
SELECT l.jeditaskid, t.taskname, t.username, l.status, t.status, l.at,
       coalesce(nullif(l.reason, ''), t.errordialog, '')
  FROM (SELECT DISTINCT ON (jeditaskid) jeditaskid, status, modificationtime AS at, reason FROM (
            SELECT jeditaskid, status, modificationtime, reason FROM tasks_statuslog
             WHERE modificationtime >= %(since)s AND modificationtime < %(until)s AND status = ANY(%(stopped)s)
               AND oldstatus IS DISTINCT FROM status
             ORDER BY modificationtime DESC LIMIT %(most)s) newest
         ORDER BY jeditaskid, modificationtime DESC) l
  JOIN jedi_tasks t USING (jeditaskid) ORDER BY l.at DESC
"""
_DEEDS = """
SELECT actor, action, object_type, count(*), max(at), (array_agg(object_id ORDER BY id DESC))[1],
       coalesce((array_agg(reason ORDER BY id DESC) FILTER (WHERE reason <> ''))[1], '')
  FROM (SELECT id, at, actor, action, object_type, object_id, reason FROM audit_entries
         WHERE at >= %(since)s AND at < %(until)s AND object_type <> ALL(%(private)s) AND action <> ALL(%(elsewhere)s)
         ORDER BY at DESC LIMIT %(most)s) newest
 GROUP BY 1, 2, 3 ORDER BY object_type = ANY(%(of_users)s), 5 DESC
"""
"""What was done, but not to accounts: those are their owners' own affair."""
_QUEUES = """
(SELECT false, queue, old, new, by, reason, at, until, after FROM queue_status_log
  WHERE at >= %(since)s AND at < %(until)s AND old <> '' ORDER BY id DESC LIMIT %(most)s)
UNION ALL
(SELECT true, queue, old, new, by, reason, at, until, after FROM queue_status_log
  WHERE ended_at IS NULL AND until IS NOT NULL AND until <= %(soon)s ORDER BY until LIMIT %(most)s)
"""
"""Changes of status in the window, and those in force that end soon."""


def read_facts(since: datetime, until: datetime, now: datetime) -> ShiftFacts:
    """What happened from `since` to before `until`, and what is open now. Eight statements."""
    window: dict[str, Any] = {"since": since, "until": until}
    errors = _rows(_ERRORS, {**window, "most": MOST_LINES})
    first = since.replace(minute=0, second=0, microsecond=0)
    rates = _rows(_RATES, {"first": first, "before": first - BEFORE, "until": until})
    stopped = _rows(_STOPPED, {**window, "stopped": [str(status) for status in STOPPED], "most": MOST_TASKS})
    deeds = _rows(
        _DEEDS,
        {
            **window,
            "private": list(audit.PRIVATE),
            "elsewhere": list(ELSEWHERE),
            "of_users": list(OF_USERS),
            "most": MOST_DEEDS,
        },
    )
    queues = _rows(_QUEUES, {**window, "soon": now + WATCHED, "most": 4 * MOST_LINES})
    failed = JobFailure.objects.filter(ended__gte=since, ended__lt=until)
    spreads = asked.spreads(failed, [row[0] for row in errors]) if errors else {}
    items = tuple(shift_facts.ItemFact(*row) for row in _items())
    return ShiftFacts(
        since,
        until,
        now,
        errors=tuple(_error(row, spreads.get(row[0])) for row in errors),
        kinds=errors[0][9] if errors else 0,
        new_kinds=errors[0][10] if errors else 0,
        failures=int(errors[0][11]) if errors else 0,
        rates=tuple(shift_facts.RateFact(key, *map(int, numbers)) for key, *numbers in rates),
        stopped=tuple(shift_facts.StoppedFact(*row) for row in stopped),
        deeds=tuple(
            shift_facts.DeedFact(actor, action, title_of(action), kind, kind_of(kind), times, at, object_id, reason)
            for actor, action, kind, times, at, object_id, reason in deeds
        ),
        moves=tuple(shift_facts.StatusFact(*row[1:]) for row in queues if not row[0]),
        ending=tuple(shift_facts.StatusFact(*row[1:]) for row in queues if row[0]),
        items=items,
        waiting=tuple(_waiting(now, {item.key for item in items})),
    )


def _error(row: Any, spread: Spread | None) -> shift_facts.ErrorFact:
    fact = shift_facts.ErrorFact(*row[:8])
    return replace(fact, cause=CAUSES.get(row[8], ""), spread=spread.sentence if spread else "")


def _rows(statement: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def _items() -> list[Any]:
    """Items that are not resolved, the most urgent first."""
    shown = ("key", "tone", "sentence", "path", "since", "acknowledged_by", "snoozed_until", "ticket")
    return list(AttentionItem.objects.filter(gone_at=None).order_by("-rank", "id").values_list(*shown)[:MOST_ITEMS])


def _waiting(now: datetime, keys: set[str]) -> list[shift_facts.WaitingFact]:
    """Tasks that are held up for long and are no item themselves, the most urgent first."""
    held = Task.objects.filter(status__in=WAITING).annotate(
        held_since=Coalesce("frozen_time", "state_change_time", "modification_time")
    )
    rows = held.filter(held_since__lt=now - WAITS_FOR).order_by(F("current_priority").desc(nulls_last=True), "id")
    told = {key.partition(":")[2] for key in keys if key.startswith(("stuck_task:", "asks:"))}
    found = rows.values_list("id", "user", "status", "held_since", "error_dialog")[: MOST_LINES + len(told)]
    return [shift_facts.WaitingFact(*row[:4], row[4] or "") for row in found if str(row[0]) not in told][:MOST_LINES]


def notes(since: datetime, until: datetime) -> list[ShiftNote]:
    """The notes of a window, the latest first. One statement."""
    return list(ShiftNote.objects.filter(at__gte=since, at__lt=until).order_by("-at", "-id")[:SHOWN_NOTES])


def handovers() -> list[Handover]:
    """The latest hand-overs. One statement."""
    return list(Handover.objects.order_by("-id")[:SHOWN_HANDOVERS])
