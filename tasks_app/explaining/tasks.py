"""Why a task waits: its gates, the last word of each broker with advice, what came near, and how it changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count
from django.utils import timezone

from brokerage_app.codes import GENERATION_OFF
from brokerage_app.configured import configuration
from brokerage_app.models import ThrottleRecord, VerdictRecord
from jedisite import refusals
from jedisite.models import Agent
from tasks_app import codes
from tasks_app.explaining.gates import AGENT_OF, AgentFact, Gate, InputFact, VerdictFact, WhyFacts, first_no, walk
from tasks_app.generating.groups import record_of
from tasks_app.models import Dataset, Job, Task
from tasks_app.models.dataset import INPUT_TYPES

HISTORY = timedelta(hours=48)
HISTORY_ROWS = 200
NEAR = 10
SITES_SHOWN = 2000

_PILOTS = """
SELECT w.site, extract(epoch FROM %(now)s - max(s.heartbeat_at))::float8
  FROM (SELECT DISTINCT computingsite AS site FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = 'activated') w
  LEFT JOIN jobs s ON s.computingsite = w.site AND s.heartbeat_at IS NOT NULL
       AND s.jobstatus IN ('sent', 'starting', 'running', 'holding', 'transferring', 'finished', 'failed')
 GROUP BY w.site
"""
_AHEAD = """
SELECT count(*) FROM jedi_tasks t
 WHERE t.status IN ('ready', 'scouting', 'running', 'pending') AND t.gshare IS NOT DISTINCT FROM %(share)s
   AND t.workqueue_id IS NOT DISTINCT FROM %(queue)s AND t.jeditaskid <> %(task)s
   AND (coalesce(t.currentpriority, 0) > %(priority)s
        OR (coalesce(t.currentpriority, 0) = %(priority)s AND t.jeditaskid < %(task)s))
"""


def facts_of(task: Task, now: datetime, latest: dict[str, VerdictRecord], throttled: ThrottleRecord | None) -> WhyFacts:
    """What the gates look at, from the latest verdicts and the throttle's decision, and about five statements."""
    counted = Job.objects.filter(task_id=task.id).values_list("status").annotate(n=Count("id")).order_by()
    jobs = {status: n for status, n in counted}
    masters = Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, master_id=None).exclude(status="removed")
    return WhyFacts(
        status=task.status,
        error_dialog=task.error_dialog or "",
        state_since=task.state_change_time,
        next_check=task.next_check,
        inputs=tuple(
            InputFact(d.name, d.status, d.files, max(d.files_to_be_used - d.files_used, 0), d.files_missing or 0)
            for d in masters.order_by("list_position", "id")
        ),
        agent=_agent(task.status, now),
        claimed_by=task.locked_by or "",
        nucleus=task.nucleus or "",
        throttle=_throttle(task, now, throttled),
        task_verdict=_said(latest.get("task")),
        verdict=_said(latest.get("job")),
        jobs=jobs,
        pilots=_pilots(task.id, now) if jobs.get("activated") else {},
        now=now,
    )


def _latest(task_id: int) -> dict[str, VerdictRecord]:
    found = VerdictRecord.objects.filter(task_id=task_id).order_by("kind", "-id").distinct("kind")
    return {record.kind: record for record in found}


def _said(record: VerdictRecord | None) -> VerdictFact | None:
    if record is None:
        return None
    # A code of a former version says no more than that the task waits.
    code = record.code if not record.code or record.code in refusals.all_codes() else codes.TASK_WAITS_TO_RETRY
    return VerdictFact(code, record.sentence, len(record.chosen), record.at, record.stopped is not None)


def _throttle(task: Task, now: datetime, record: ThrottleRecord | None) -> VerdictFact | None:
    """What the throttle of the job generator says of the task now; None when it lets it pass."""
    if configuration().get("jobgen", "JOB_SUBMISSION", vo=task.vo) is False:
        return VerdictFact(GENERATION_OFF, f"JOB_SUBMISSION is false for {task.vo or 'all'}", 0, now, stopped=True)
    if record is None or not record.refuses(task.current_priority or 0):
        return None
    return VerdictFact(record.code, record.detail, 0, record.since, stopped=True)


def _agent(status: str, now: datetime) -> AgentFact | None:
    name = AGENT_OF.get(status)
    row = Agent.objects.filter(name=name).first() if name else None
    if row is None:
        return None
    silent = (now - row.last_ended_at).total_seconds() if row.last_ended_at else None
    return AgentFact(row.name, row.paused, row.period_s, silent, row.errors_in_a_row, row.last_error.strip()[-300:])


def _pilots(task_id: int, now: datetime) -> dict[str, float | None]:
    with connection.cursor() as cursor:
        cursor.execute(_PILOTS, {"task": task_id, "now": now})
        return dict(cursor.fetchall())


def why(task: Task, now: datetime | None = None) -> dict[str, Any]:
    """The whole answer as plain values; the page shows the same."""
    now = now or timezone.now()
    records, throttled = _latest(task.id), record_of(task, now)
    gates = walk(facts_of(task, now, records, throttled))
    blocked = first_no(gates)
    return {
        "task": task.id,
        "status": task.status,
        "blocked_by": _gate(blocked) if blocked else None,
        "gates": [_gate(gate) for gate in gates],
        "verdicts": [_verdict(records[kind]) for kind in ("task", "job", "merge") if kind in records],
        "throttle": throttled.lines if throttled else [],
        "history": _history(task.id, now),
        "position": _position(task),
    }


def _gate(gate: Gate) -> dict[str, Any]:
    return {
        "name": gate.name, "title": gate.title, "answer": gate.answer, "code": gate.code, "sentence": gate.sentence,
        "advice": gate.advice, "who_can_fix": gate.who, "since": gate.since,
    }  # fmt: skip


def _verdict(record: VerdictRecord) -> dict[str, Any]:
    return {
        "id": record.id, "kind": record.kind, "broker": record.broker, "at": record.at, "first_at": record.first_at,
        "repeats": record.repeats, "sentence": record.sentence, "code": record.code,
        "stopped": explained(record.stopped[0], detail=record.stopped[1]) if record.stopped else None,
        "chosen": [{"site": c[0], "weight": c[1], "factors": c[2] if len(c) > 2 else {}} for c in record.chosen],
        "reasons": [
            {**explained(code), "sites": len(sites), "examples": sites[:5]}
            for code, sites in sorted(record.reasons.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        ],
        "skipped": [
            {"site": s[0], "code": s[1], "sentence": s[2], "advice": explained(s[1])["advice"]}
            for s in record.skipped[:SITES_SHOWN]
        ],
        "nearly": nearly(record.skipped),
    }  # fmt: skip


def explained(code: str, **more: Any) -> dict[str, Any]:
    """What a code means. Of codes of former versions nothing but the code is known."""
    if code not in refusals.all_codes():
        return {"code": code, "title": code.replace("_", " "), "group": "", "who_can_fix": "", "advice": "", **more}
    found = refusals.get(code)
    return {
        "code": code, "title": found.title, "group": found.group, "who_can_fix": found.who_can_fix, "advice": found.advice,
        **more,
    }  # fmt: skip


def nearly(skipped: Sequence[Sequence[Any]], most: int = NEAR) -> list[dict[str, Any]]:
    """Sites that were skipped for a number, the nearest first: what is needed, what they offer, and the part between."""
    found = []
    for site, code, sentence, *rest in skipped:
        values = rest[0] if rest else []
        if len(values) < 2 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values[:2]):
            continue
        need, offer = values[:2]
        gap = abs(need - offer) / max(abs(need), abs(offer), 1)
        found.append(
            {"site": site, "code": code, "sentence": sentence, "need": need, "offer": offer, "gap": round(gap, 4)}
        )
    return sorted(found, key=lambda one: (one["gap"], one["site"]))[:most]


def _history(task_id: int, now: datetime) -> list[dict[str, Any]]:
    rows = VerdictRecord.objects.filter(task_id=task_id, at__gt=now - HISTORY).order_by("-id")[:HISTORY_ROWS]
    return [
        {
            "kind": r.kind, "from": r.first_at, "to": r.at, "times": r.repeats, "chosen": len(r.chosen), "code": r.code,
            "counts": {code: len(sites) for code, sites in r.reasons.items()}, "sentence": r.sentence,
        }
        for r in rows
    ]  # fmt: skip


def _position(task: Task) -> dict[str, Any]:
    values = {
        "share": task.gshare,
        "queue": task.work_queue_id,
        "task": task.id,
        "priority": task.current_priority or 0,
    }
    with connection.cursor() as cursor:
        cursor.execute(_AHEAD, values)
        ahead = cursor.fetchone()[0]
    queue = task.work_queue.name if task.work_queue is not None else ""
    return {"share": task.gshare or "", "work_queue": queue, "priority": task.current_priority or 0, "ahead": ahead}
