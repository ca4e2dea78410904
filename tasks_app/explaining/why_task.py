"""Why a task waits: its gates, the last word of each broker with advice, what came near, and how it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Case, F, Q, Subquery, When
from django.db.models.functions import JSONObject
from django.utils import timezone
from django.utils.text import capfirst

from brokerage_app.brokers.funnel import NUCLEI, order_of
from brokerage_app.grid.configured import configuration
from brokerage_app.grid.installed_policy import share_tree
from brokerage_app.models import JobCount, ThrottleRecord, VerdictRecord
from brokerage_app.vocabulary.codes import GENERATION_OFF
from jedisite import refusals
from jedisite.agents import agent_state
from jedisite.models import Agent, Trouble
from tasks_app.attention.reading import TROUBLE_SEEN
from tasks_app.configured import timeout_limits
from tasks_app.domain import refusal_codes
from tasks_app.domain.states import JOB_AT_PILOT, TASK_FINAL, JobStatus, TaskStatus
from tasks_app.domain.turns import AGENT_OF
from tasks_app.explaining import deciding_again
from tasks_app.explaining.following import with_cpu_time
from tasks_app.explaining.rules.gates import AT_WORK, RUNS_AGAIN, UNREAD, WITH_ERRORS, Gate, first_no, walk
from tasks_app.explaining.rules.wait_facts import AgentFact, InputFact, ParentFact, PilotFact, VerdictFact, WhyFacts
from tasks_app.explaining.rules.wait_facts import Trouble as TroubleFact
from tasks_app.explaining.stored_verdicts import chosen_queues, told
from tasks_app.generation.groups import record_of
from tasks_app.generation.wants import gone_sites
from tasks_app.inputs import nothing_new
from tasks_app.inputs.locality import NOT_IN_DATA_MANAGEMENT
from tasks_app.lifecycle import site_waits, task_moves
from tasks_app.lifecycle.nucleus_waits import next_look
from tasks_app.models import Dataset, Task, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES

HISTORY = timedelta(hours=48)
HISTORY_ROWS = 200
CALLS_OF = timedelta(hours=4)
AHEAD_SHOWN = 5

# Times come from the clock of the database, `now` from that of this process, which may be behind. All days that calls are
# kept for are read only of queues without one in the last hours.
PILOTS = """
SELECT w.jobstatus, w.site, w.n::int,
       CASE WHEN coalesce(c.asked, e.at, c.last, a.laststart) IS NOT NULL
            THEN greatest(extract(epoch FROM %(now)s - coalesce(c.asked, e.at, c.last, a.laststart)), 0)::float8 END,
       coalesce(c.calls, 0)::int, coalesce(a.batch_jobs, 0), coalesce(q.status, ''), coalesce(q.status_reason, ''),
       CASE WHEN l.at IS NOT NULL THEN greatest(extract(epoch FROM %(now)s - l.at), 0)::float8 END, h.until,
       coalesce(p.n, 0)::int, coalesce(c.asked, e.at, c.last, a.laststart)
  FROM ({jobs}) w
  LEFT JOIN queue_activity a ON a.computingsite = w.site
  LEFT JOIN queues q ON q.name = w.site
  LEFT JOIN LATERAL (SELECT max(at) AS at FROM queue_status_log WHERE queue = w.site AND old = '') l ON true
  LEFT JOIN queue_status_log h ON h.queue = w.site AND h.ended_at IS NULL
  LEFT JOIN (SELECT site, max(coalesce(lastgetjob, least(hour + interval '1 hour', %(now)s))) AS last, max(lastgetjob) AS asked,
                    sum(getjob) AS calls
               FROM sitedata WHERE hour > %(since)s AND getjob > 0 GROUP BY site) c ON c.site = w.site
  LEFT JOIN LATERAL (SELECT lastgetjob AS at FROM sitedata
                      WHERE c.last IS NULL AND site = w.site AND lastgetjob IS NOT NULL ORDER BY hour DESC LIMIT 1) e ON true
  LEFT JOIN (SELECT computingsite, sum(njobs) AS n FROM job_counts WHERE jobstatus = ANY(%(at_pilots)s) GROUP BY 1) p
         ON p.computingsite = w.site
"""
_JOBS = """
SELECT jobstatus, computingsite AS site, count(*) AS n FROM jobs WHERE jeditaskid = %(task)s GROUP BY 1, 2
"""
_FAILED = """
SELECT EXISTS (SELECT 1 FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = 'failed')
    OR EXISTS (SELECT 1 FROM jobs_archive WHERE jeditaskid = %(task)s AND jobstatus = 'failed')
"""
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


def facts_of(task: Task, now: datetime, latest: dict[str, VerdictRecord], throttled: ThrottleRecord | None) -> WhyFacts:
    """What the gates look at, from the latest verdicts and the throttle's decision, and three statements.

    One more of a task that has a parent and no inputs yet, and of one that is done.
    """
    at_sites = pilots_of(_JOBS, {"task": task.id}, now)
    jobs: Counter[str] = Counter()
    for status, at_site in at_sites:
        jobs[status] += at_site.waiting
    parent = Task.objects.filter(pk=task.parent_id).exclude(pk=task.id)
    masters = list(
        Dataset.objects.filter(task_id=task.id, type__in=INPUT_TYPES, master_id=None)
        .exclude(status="removed")
        .annotate(parent_status=Subquery(parent.values("status")))
        .order_by("list_position", "id")
    )
    agent, trouble, changed = _agent_and_trouble(task, now)
    inputs = tuple(
        InputFact(
            d.name,
            d.status,
            d.files,
            max(d.files_to_be_used - d.files_used, 0),
            d.files_missing or 0,
            held=max(d.files - d.files_to_be_used, 0),
            next_look=_next_look(d),
            numbers=d.name in NOT_IN_DATA_MANAGEMENT,
        )
        for d in masters
    )
    parent_status = masters[0].parent_status if masters else parent.values_list("status", flat=True).first()
    return WhyFacts(
        status=task.status,
        error_dialog=_why_paused(task) if task.status == TaskStatus.PAUSED else task.error_dialog or "",
        state_since=task.since,
        stuck_since=task.frozen_time,
        next_check=_next_check(task, changed),
        inputs=inputs,
        agent=agent,
        claimed_by=task.locked_by or "",
        nucleus=task.nucleus or "",
        throttle=_throttle(task, now, throttled),
        task_verdict=_said(latest.get("task")),
        verdict=_said(latest.get("job")),
        jobs=jobs,
        pilots=tuple(at_site for status, at_site in at_sites if status == JobStatus.ACTIVATED),
        parent=ParentFact(task.parent_id, parent_status) if task.parent_id and parent_status else None,
        allowed=f"{throttled.lines[0]}" if throttled is not None and throttled.lines else "",
        rationed=throttled is not None and throttled.max_jobs is not None and not throttled.lack_of_jobs,
        ration_helps=throttled.advice if throttled is not None else "",
        trouble=trouble,
        now=now,
        share_zero=_zero_share(
            task, [at.site for status, at in at_sites if status == JobStatus.ACTIVATED and at.asks_now]
        ),
        had_errors=task.status in WITH_ERRORS and _had_errors(task.id),
        sites_gone=gone_sites(task, now) if task.status in RUNS_AGAIN else (),
        nothing_left=bool(nothing_new.left_of([task])),
        returns_to=task.old_status or "" if task.status == TaskStatus.PENDING else "",
        warned=task_moves.warnings_of(task.id) if task.status == TaskStatus.DONE else "",
    )


def _next_check(task: Task, changed: datetime | None) -> datetime:
    """When an agent looks at the task next, where the grid has `changed` last then. One statement for one without a nucleus."""
    if task.status == TaskStatus.ASSIGNING:
        return next_look(task)
    return site_waits.due(task, changed) if task.status == TaskStatus.PENDING else task.next_check


def _next_look(dataset: Dataset) -> datetime | None:
    """When the feeder looks at a growing input again; None for one that does not grow."""
    if dataset.type != "input" or dataset.state != "mutable" or dataset.state_check_time is None:
        return None
    return dataset.state_check_time + timeout_limits.limit("dataset.growing")


def _zero_share(task: Task, sites: list[str]) -> str:
    """The share of a task when nothing is meant for it and jobs of others wait at `sites`, where its own do and pilots ask now;
    "" else. Two statements."""
    share = task.gshare or ""
    if not sites or share_tree().percents.get(share) != 0.0:
        return ""
    others = JobCount.objects.filter(site__in=sites, status=JobStatus.ACTIVATED, jobs__gt=0).exclude(share=share)
    return share if others.exists() else ""


def _had_errors(task_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_FAILED, {"task": task_id})
        return bool(cursor.fetchone()[0])


def _why_paused(task: Task) -> str:
    """Who paused it and why; its dialog is that of an earlier state."""
    last = TaskStatusLog.objects.filter(task_id=task.id).order_by("-id").first()
    return last.reason if last is not None and last.status == TaskStatus.PAUSED else task.error_dialog or ""


def _agent_and_trouble(task: Task, now: datetime) -> tuple[AgentFact | None, TroubleFact | None, datetime | None]:
    """The agent that is to look at the task, the oldest error for which an agent that it needs has left it aside, and when the
    grid has changed last, where an agent is to look.

    One statement, where there is such an agent.
    """
    left = Trouble.objects.filter(task_id=task.id, agent__in=AT_WORK, next_try__gt=now - TROUBLE_SEEN).order_by("since")
    name = AGENT_OF.get(task.status)
    if name is not None:
        as_json = JSONObject(agent="agent", failures="failures", error="error", since="since")
        here, changed = Subquery(left.values(found=as_json)[:1]), Subquery(site_waits.last_change())
        row = Agent.objects.filter(name=name).annotate(left=here, changed=changed).first()
        if row is not None:
            told = row.left and TroubleFact(**{**row.left, "since": datetime.fromisoformat(row.left["since"])})
            return _agent(row, now), told or None, row.changed
    found = left.first()
    trouble = TroubleFact(found.agent, found.failures, found.error, found.since) if found is not None else None
    return None, trouble, None


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


def _said(record: VerdictRecord | None) -> VerdictFact | None:
    if record is None:
        return None
    # A code of a former version says no more than that the task waits.
    code = record.code if not record.code or record.code in refusals.all_codes() else refusal_codes.TASK_WAITS_TO_RETRY
    return VerdictFact(
        code, record.sentence, len(chosen_queues(record)), record.at, record.stopped is not None, record.first_at
    )


def _throttle(task: Task, now: datetime, record: ThrottleRecord | None) -> VerdictFact | None:
    """What the throttle of the job generator says of the task now; None when it lets it pass."""
    if configuration().get("jobgen", "JOB_SUBMISSION", vo=task.vo) is False:
        return VerdictFact(GENERATION_OFF, f"JOB_SUBMISSION is false for {task.vo or 'all'}", 0, now, stopped=True)
    if record is None or not record.refuses(task.current_priority or 0):
        return None
    return VerdictFact(record.code, record.detail, 0, record.since, stopped=True, advice=record.advice)


def _agent(row: Agent, now: datetime) -> AgentFact:
    silent = (now - row.last_ended_at).total_seconds() if row.last_ended_at else None
    pause = agent_state.pauses([row.name]).get(row.name) if row.paused else None
    holds = row.lease_owner if row.lease_until is not None and row.lease_until > now else ""
    return AgentFact(
        row.name,
        row.paused,
        row.period_s,
        silent,
        row.errors_in_a_row,
        row.last_error.strip()[-300:],
        took_s=row.last_duration_s,
        items=row.last_items,
        due_s=(row.due_at - now).total_seconds(),
        holder=holds or "",
        pause=pause.words if pause is not None else "",
    )


def pilots_of(jobs: str, values: dict[str, Any], now: datetime) -> list[tuple[str, PilotFact]]:
    """Jobs by state and site, with the signs of pilots there. `jobs`: SQL of this package for (jobstatus, site, n), with its
    values. One query."""
    with connection.cursor() as cursor:
        around: dict[str, Any] = {"now": now, "since": now - CALLS_OF, "at_pilots": sorted(JOB_AT_PILOT)}
        cursor.execute(PILOTS.format(jobs=jobs), {**values, **around})
        return [(status, PilotFact(*row)) for status, *row in cursor.fetchall()]


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
    "not_looked_at": "Not looked at yet.",
    "scouts_go_first": "Scouts go first.",
    "sites": "No site takes its jobs.",
    "queues": "Its jobs wait.",
    "pilots": "Its jobs wait.",
    "running": "Its jobs wait.",
}
"""Words for codes, and for gates that are no questions to whoever waits."""


def look(task: Task, now: datetime) -> Why:
    """Find out why a task waits; its `work_queue` should be at hand. Six queries, or seven; one to three more for what helps."""
    records, history = _verdicts(task.id, now)
    throttled = record_of(task, now)
    facts = facts_of(task, now, records, throttled)
    gates = _with_remedies(task, walk(facts), records, now)
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
    found = look(task, now or timezone.now())
    return {
        "task": task.id,
        "status": task.status,
        "blocked_by": as_json(found.blocked) if found.blocked else None,
        "gates": [as_json(gate) for gate in found.gates],
        "verdicts": [told(record, found.before(record)) for record in found.verdicts],
        "throttle": found.throttled.lines if found.throttled else [],
        "history": [_passed(record) for record in found.history],
        "position": found.position,
    }


def as_json(gate: Gate) -> dict[str, Any]:
    return {
        "name": gate.name,
        "title": gate.title,
        "answer": gate.answer,
        "code": gate.code,
        "sentence": gate.sentence,
        "advice": gate.advice,
        "command": gate.command,
        "who_can_fix": gate.who,
        "since": gate.since,
        "remedies": [
            {"sentence": one.sentence, "who_can_fix": one.who, "changes": one.lines, "sites": one.sites}
            for one in gate.remedies or ()
        ],
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
