"""What the gates of a task look at, read from the tables in few statements."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Subquery
from django.db.models.functions import JSONObject

from brokerage_app.cases.gathering import NUCLEUS
from brokerage_app.grid.closed_storage import queues_without_storage
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
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.domain.turns import AGENT_OF
from tasks_app.explaining import away_inputs, goals
from tasks_app.explaining.rules.gates import AT_WORK, DESTINED, NOT_PLACED, RUNS_AGAIN, WITH_ERRORS
from tasks_app.explaining.rules.wait_facts import (
    NOTHING_COMES,
    AgentFact,
    Incoming,
    InputFact,
    ParentFact,
    PilotFact,
    VerdictFact,
    WhyFacts,
)
from tasks_app.explaining.rules.wait_facts import Trouble as TroubleFact
from tasks_app.explaining.stored_verdicts import chosen_queues
from tasks_app.generation.wants import gone_sites
from tasks_app.inputs import nothing_new, staging
from tasks_app.inputs.locality import NOT_IN_DATA_MANAGEMENT
from tasks_app.inputs.missing_files import missing_of
from tasks_app.inputs.rules.staged import staging_in_words
from tasks_app.lifecycle import site_waits, task_moves
from tasks_app.lifecycle.nucleus_waits import GATHERED_TYPES, next_look
from tasks_app.models import Dataset, Task, TaskStatusLog
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.params.splitrule import SplitRule
from tasks_app.transfers import copy_reasons, link_use
from tasks_app.transfers.rules.under_way import NOTHING

CALLS_OF = timedelta(hours=4)

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


def facts_of(task: Task, now: datetime, latest: dict[str, VerdictRecord], throttled: ThrottleRecord | None) -> WhyFacts:
    """What the gates look at, from the latest verdicts and the throttle's decision, and three statements.

    One more while jobs are queued at sites, and two while the folder of a storage is away.
    Four more while jobs wait for their input, and as many while files come from tape.
    One more of a task that has a parent and no inputs yet, of one that is done, of one with a nucleus, of one with a goal, and
    while outputs are gathered.
    """
    at_sites = away_inputs.at_sites(task.id, pilots_of(_JOBS, {"task": task.id}, now))
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
    goal = ""
    if task.goal is not None:
        due = Agent.objects.filter(name=goals.GOALS).values_list("due_at", flat=True).first()
        goal = goals.goal_of(task, masters, missing_of(masters), due)
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
        not_gathered=_not_gathered(task),
        outgoing=link_use.outputs_of(task_id=task.id) if jobs[JobStatus.TRANSFERRING] else NOTHING,
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
        goal=goal,
        lost_to_it=nothing_new.lost_to([task]).get(task.id, ""),
        returns_to=task.old_status or "" if task.status == TaskStatus.PENDING else "",
        staging=(staged := _staging(task, now)),
        from_tape=incoming_of(now, TransferKind.STAGE, task_id=task.id) if staged else NOTHING_COMES,
        incoming=incoming_of(now, TransferKind.COPY, task_id=task.id) if jobs[JobStatus.ASSIGNED] else NOTHING_COMES,
        gathered=incoming_of(now, TransferKind.GATHER, task_id=task.id)
        if jobs[JobStatus.TRANSFERRING]
        else NOTHING_COMES,
        warned=task_moves.warnings_of(task.id) if task.status == TaskStatus.DONE else "",
    )


def _next_check(task: Task, changed: datetime | None) -> datetime:
    """When an agent looks at the task next, where the grid has `changed` last then. One statement for one without a nucleus."""
    if task.status == TaskStatus.ASSIGNING:
        return next_look(task)
    return site_waits.due(task, changed) if task.status == TaskStatus.PENDING else task.next_check


def _not_gathered(task: Task) -> str:
    """Why the nucleus of a task gathers none of its outputs, for which it has places already; "" when it does. One statement."""
    if not task.nucleus or task.status in NOT_PLACED:
        return ""
    if SplitRule.parse(task.split_rule).flag("SO"):
        return "they stay where they are made (stayOutputOnSite)"
    made = Dataset.objects.filter(task_id=task.id, type__in=GATHERED_TYPES)
    return "" if made.filter(destination__startswith=NUCLEUS).exists() or not made.exists() else DESTINED


def _staging(task: Task, now: datetime) -> str:
    """One or two statements, of tasks whose inputs are staged."""
    if task.status in TASK_FINAL or SplitRule.parse(task.split_rule).get_int("IS") != 1:
        return ""
    found = staging.progress(task.id)
    return staging_in_words(found, now.astimezone(UTC)) if found.left else ""


def incoming_of(now: datetime, *kinds: TransferKind, **whose: int) -> Incoming:
    """What is being brought to the task with a `task_id` or the job with a `job_id`. Four statements; one where nothing is."""
    found = copy_reasons.copies_of(now, *kinds, **whose)
    if not found.left:
        return NOTHING_COMES
    mover = Agent.objects.filter(name="mover").first()
    return Incoming(found, _agent(mover, now) if mover is not None else None)


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
    values. Two queries, one where there are no such jobs."""
    with connection.cursor() as cursor:
        around: dict[str, Any] = {"now": now, "since": now - CALLS_OF, "at_pilots": sorted(JOB_AT_PILOT)}
        cursor.execute(PILOTS.format(jobs=jobs), {**values, **around})
        rows = cursor.fetchall()
    shut = queues_without_storage() if rows else {}
    return [(status, replace(PilotFact(*row), shut=shut.get(row[0], ""))) for status, *row in rows]
