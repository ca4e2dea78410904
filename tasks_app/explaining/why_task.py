"""Why a task waits: its gates, the last word of each broker with advice, what came near, and how it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Case, F, Q, When
from django.db.models.functions import JSONObject
from django.utils import timezone
from django.utils.text import capfirst

from brokerage_app.brokers.funnel import NUCLEI, order_of
from brokerage_app.models import ThrottleRecord, VerdictRecord
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.explaining import added_gates, deciding_again
from tasks_app.explaining.following import with_cpu_time
from tasks_app.explaining.queries import facts_of
from tasks_app.explaining.rules.answers import Gate, as_json, first_held, first_no
from tasks_app.explaining.rules.gates import UNREAD, walk
from tasks_app.explaining.rules.wait_facts import WhyFacts
from tasks_app.explaining.stored_verdicts import as_plain, chosen_queues
from tasks_app.generation.groups import record_of
from tasks_app.models import Task
from tasks_app.models.dataset import INPUT_TYPES

HISTORY = timedelta(hours=48)
HISTORY_ROWS = 200
AHEAD_SHOWN = 5
_AHEAD = """
SELECT t.jeditaskid, t.taskname, t.status, coalesce(t.currentpriority, 0), count(*) OVER () FROM jedi_tasks t
 WHERE t.status IN ('ready', 'scouting', 'running', 'pending') AND t.gshare IS NOT DISTINCT FROM %(share)s
   AND t.workqueue_id IS NOT DISTINCT FROM %(queue)s AND t.jeditaskid <> %(task)s
   AND (coalesce(t.currentpriority, 0) > %(priority)s
        OR (coalesce(t.currentpriority, 0) = %(priority)s AND t.jeditaskid < %(task)s))
   AND EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = ANY(%(inputs)s)
                  AND d.masterid IS NULL AND d.nfilestobeused > d.nfilesused)
 ORDER BY coalesce(t.currentpriority, 0) DESC, t.jeditaskid LIMIT %(most)s
"""


def _verdicts(task_id: int, now: datetime) -> tuple[dict[str, VerdictRecord], list[VerdictRecord]]:
    """The latest verdict of each kind, in full, and those of the last days without what is long, the newest first. One query."""
    latest = VerdictRecord.objects.filter(task_id=task_id).order_by("kind", "-id").distinct("kind").values("id")
    in_full = JSONObject(skipped="skipped", needs="needs", facts="facts")
    rows = (
        VerdictRecord.objects.filter(Q(at__gt=now - HISTORY) | Q(id__in=latest), task_id=task_id)
        .defer("skipped", "needs", "facts")
        .annotate(in_full=Case(When(id__in=latest, then=in_full)))
        .order_by(F("in_full").asc(nulls_last=True), "-id")[: HISTORY_ROWS + len(KINDS)]
    )
    records: dict[str, VerdictRecord] = {}
    for row in rows:
        if row.in_full is not None:
            records[row.kind] = row
            vars(row).update(row.in_full)
    history: list[VerdictRecord] = [row for row in rows if row.at > now - HISTORY]
    return records, sorted(history, key=lambda row: -row.id)[:HISTORY_ROWS]


@dataclass(frozen=True, slots=True)
class Why:
    """All that is known of what a task waits for. `records`: the latest verdict of each kind; `history`: newest first."""

    task: Task
    gates: tuple[Gate, ...]
    records: Mapping[str, VerdictRecord]
    throttled: ThrottleRecord | None
    history: Sequence[VerdictRecord]
    position: Mapping[str, Any]

    @property
    def blocked(self) -> Gate | None:
        return first_no(self.gates)

    @property
    def held(self) -> Gate | None:
        """What holds a part of its jobs up, while others go on; None where nothing does, and where all are held up."""
        return first_held(self.gates) if self.blocked is None else None

    @property
    def lead(self) -> str:
        """What comes of what holds the task up, in a few words; "" when nothing does."""
        gate = self.blocked
        if gate is None:
            return ""
        if self.has_ended:
            return "It gets no more jobs."
        return _LEADS.get(gate.code) or _LEADS.get(gate.name) or f"{gate.title}: no."

    @property
    def headline(self) -> str:
        """The first words of the page: what comes of what holds the task up, and that itself; "" when nothing does."""
        return f"{self.lead} {capfirst(self.blocked.sentence)}" if self.blocked is not None else ""

    @property
    def has_ended(self) -> bool:
        return self.task.status in TASK_FINAL

    @property
    def verdicts(self) -> list[VerdictRecord]:
        return [self.records[kind] for kind in KINDS if kind in self.records]

    def before(self, record: VerdictRecord) -> list[VerdictRecord]:
        """Earlier verdicts of the same kind, the newest first."""
        return [one for one in self.history if one.kind == record.kind and one.id < record.id]


KINDS = ("task", "job", "merge")
_LEADS: Final = {
    "not_looked_at": "No decision yet.",
    "scouts_go_first": "Scouts go first.",
    "sites": "No site accepts its jobs.",
    "queues": "Its jobs wait.",
    "pilots": "Its jobs wait.",
    "running": "Its jobs wait.",
}
"""Words for codes, and for gates that are no questions to whoever waits."""


def explain(task: Task, now: datetime) -> Why:
    """Find out why a task waits; its `work_queue` should be at hand. Six queries, or seven; one to three more for what helps."""
    records, history = _verdicts(task.id, now)
    throttled = record_of(task, now)
    facts = facts_of(task, now, records, throttled)
    gates = _with_remedies(task, walk(facts, added_gates.of_task(task, now)), records, now)
    return Why(task, gates, records, throttled, history, _position(task, facts, now))


_DECIDED: Final = {"nucleus": "task", "sites": "job"}
"""The gates that a broker decides, and the kind of its verdicts."""


def _with_remedies(
    task: Task, gates: tuple[Gate, ...], records: Mapping[str, VerdictRecord], now: datetime
) -> tuple[Gate, ...]:
    """The gates, and with the one of a broker what helps, when it is the one that the task waits at."""
    blocked = first_no(gates)
    if blocked is None:
        return gates
    record = records.get(_DECIDED.get(blocked.name, ""))
    found = deciding_again.helping(record, now) if record is not None and not record.chosen else None
    if found is None or (not found.remedies and blocked.code in order_of("", NUCLEI)):
        # What nuclei lack is told by the code where no change is known that would help.
        return gates
    remedies = tuple(with_cpu_time(one, task.cpu_time, task.cpu_time_unit or "") for one in found.remedies)
    told = replace(blocked, remedies=remedies, untried=found.untried)
    return tuple(told if gate is blocked else gate for gate in gates)


def why(task: Task, now: datetime | None = None) -> dict[str, Any]:
    """The whole answer as plain values; the page shows the same."""
    found = explain(task, now or timezone.now())
    return {
        "task": task.id,
        "status": task.status,
        "blocked_by": as_json(found.blocked) if found.blocked else None,
        "gates": [as_json(gate) for gate in found.gates],
        "verdicts": [as_plain(record, found.before(record)) for record in found.verdicts],
        "throttle": found.throttled.lines if found.throttled else [],
        "history": [_passed(record) for record in found.history],
        "position": found.position,
    }


def _passed(record: VerdictRecord) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "from": record.first_at,
        "to": record.at,
        "times": record.repeats,
        "chosen": len(chosen_queues(record)),
        "code": record.code,
        "counts": {code: len(sites) for code, sites in record.reasons.items()},
        "sentence": record.sentence,
    }


def _position(task: Task, facts: WhyFacts, now: datetime) -> dict[str, Any]:
    """Tasks of the same share and work queue with input left that get jobs before this one, and when an agent looks at it
    next. Nothing is before a task that has ended.
    """
    priority = task.current_priority or 0
    values = {
        "share": task.gshare,
        "queue": task.work_queue_id,
        "task": task.id,
        "priority": priority,
        "most": AHEAD_SHOWN,
        "inputs": sorted(INPUT_TYPES),
    }
    rows: list[tuple[Any, ...]] = []
    if task.status not in TASK_FINAL:
        with connection.cursor() as cursor:
            cursor.execute(_AHEAD, values)
            rows = cursor.fetchall()
    agent = facts.agent
    blocked_by_input = facts.status == TaskStatus.DEFINED and not any(one.status in UNREAD for one in facts.inputs)
    awaits_more = facts.next_look if blocked_by_input else None
    due = now + timedelta(seconds=max(agent.due_s or 0.0, 0.0)) if agent is not None and not agent.paused else None
    return {
        "share": task.gshare or "",
        "work_queue": task.work_queue.name if task.work_queue is not None else "",
        "priority": priority,
        "ahead": rows[0][4] if rows else 0,
        "first": [{"task": r[0], "name": r[1], "status": r[2], "priority": r[3]} for r in rows],
        "next_pass": max(due, facts.next_check or due, awaits_more or due) if due is not None else None,
    }
