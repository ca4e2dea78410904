"""Why a job waits: its gates, the decision that sent it to its site, and its place in the queue there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from brokerage_app.models import Queue, VerdictRecord, WorkQueue
from tasks_app.configured import timeout_limits
from tasks_app.counts.line_order import line_order
from tasks_app.domain import job_timeouts
from tasks_app.domain.job_errors import PAYLOAD, error_of
from tasks_app.domain.lines import LINE, URGENT, of_job, of_share, queue_of
from tasks_app.domain.range_jobs import BY_CHANNEL
from tasks_app.domain.states import JOB_AT_PILOT, JobStatus
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.explaining import away_inputs, merging_facts
from tasks_app.explaining.queries import incoming_of, pilots_of
from tasks_app.explaining.rules.answers import Gate, as_json, first_no
from tasks_app.explaining.rules.job_gates import CAP, ChosenFact, JobFacts, Lacking, QueueFact, walk
from tasks_app.explaining.rules.wait_facts import NOTHING_COMES
from tasks_app.models import File, Job, JobFile, JobStatusLog
from tasks_app.models.job import JobColumns
from tasks_app.refining.offered import MERGES
from tasks_app.transfers import link_use
from tasks_app.transfers.rules.under_way import NOTHING
from tasks_app.upkeep import overdue

LOG_ROWS: Final = 200
_OWN = f"""
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE computingsite = %(site)s AND jobstatus = 'activated' {{of_line}}
   AND ((currentpriority * -1), pandaid) < (%(priority)s, %(job)s) LIMIT {CAP + 1}) j
"""  # noqa: S608 - constants
_OF_LINE: Final = f"AND {LINE} = %(line)s"
_OF_NO_LINE: Final = f"AND ({LINE} IS NULL OR {LINE} <> ALL(%(before)s::text[]))"
# Lines in the order in which they are served, up to the first CAP jobs.
_BEFORE = f"""
SELECT name, count(*)
  FROM (SELECT l.name, l.place FROM unnest(%(before)s::text[]) WITH ORDINALITY l (name, place)
         CROSS JOIN LATERAL (SELECT 1 FROM jobs WHERE computingsite = %(site)s AND jobstatus = 'activated'
                                AND {LINE} = l.name) j LIMIT {CAP + 1}) ahead
 GROUP BY name, place ORDER BY place
"""  # noqa: S608 - constants
_HERE = "SELECT 'activated' AS jobstatus, %(site)s::text AS site, 1 AS n"


@dataclass(frozen=True, slots=True)
class Why:
    """All that is known of what a job waits for."""

    job: JobColumns
    gates: tuple[Gate, ...]
    facts: JobFacts

    @property
    def blocked(self) -> Gate | None:
        return first_no(self.gates)


def builder_of(job: JobColumns) -> Job | None:
    """The job that builds what this one waits for."""
    if job.status != JobStatus.DEFINED:
        return None
    library = JobFile.objects.filter(job_id=job.id, type="lib", file_id__isnull=False).first()
    if library is None:
        return None
    made_by = File.objects.filter(task_id=job.task_id, dataset_id=library.dataset_id, id=library.file_id)
    return Job.objects.filter(pk__in=list(made_by.values_list("job_id", flat=True))).first()


def explain(job: JobColumns, now: datetime) -> Why:
    """Find out what a job waits for. Ten queries at most."""
    reached: dict[str, datetime] = {}
    for status, at in JobStatusLog.objects.filter(job_id=job.id).order_by("id").values_list("status", "at")[:LOG_ROWS]:
        reached.setdefault(status, at)
    builder = builder_of(job)
    waits, site = job.status == JobStatus.ACTIVATED, job.site or ""
    pilots = [found for _, found in pilots_of(_HERE, {"site": site}, now)] if waits and site else []
    silence = _silence(job) if job.status in JOB_AT_PILOT else None
    facts = JobFacts(
        status=job.status,
        site=site,
        reached=reached,
        made_at=job.creation_time,
        since=job.state_change_time,
        error=_error_words(job),
        builder=(builder.id, builder.status) if builder is not None else None,
        chosen=choice_of(job, decision_on(job)),
        pilot=pilots[0] if pilots else None,
        queue=_queue(job) if waits and site else QueueFact(),
        silent_s=max((now - job.heartbeat_at).total_seconds(), 0.0) if job.heartbeat_at else None,
        timeout_s=silence[1].total_seconds() if silence else None,
        counted_s=(now - silence[0]).total_seconds() if silence else 0.0,
        merging=merging_facts.sentence_on(job),
        outgoing=link_use.outputs_of(job_id=job.id) if job.status == JobStatus.TRANSFERRING else NOTHING,
        incoming=incoming_of(now, TransferKind.COPY, job_id=job.id)
        if job.status == JobStatus.ASSIGNED
        else NOTHING_COMES,
        gathered=incoming_of(now, TransferKind.GATHER, job_id=job.id)
        if job.status == JobStatus.TRANSFERRING
        else NOTHING_COMES,
        lacking=_lacking(job, site) if waits and site else Lacking(),
        not_begun=_not_begun(job, reached),
    )
    return Why(job, walk(facts), facts)


def why(job: JobColumns, now: datetime | None = None) -> dict[str, Any]:
    """The whole answer as plain values; the page shows the same."""
    found = explain(job, now or timezone.now())
    queue, pilot = found.facts.queue, found.facts.pilot
    return {
        "job": job.id,
        "task": job.task_id,
        "status": job.status,
        "site": job.site or "",
        "blocked_by": as_json(found.blocked) if found.blocked else None,
        "gates": [as_json(gate) for gate in found.gates],
        "decision": _as_json(found.facts.chosen),
        "pilots": {"silent_s": pilot.silent_s, "calls": pilot.calls, "workers": pilot.workers} if pilot else None,
        "ahead": {
            "share": job.gshare or "",
            "own_share": queue.own,
            "other_shares": queue.shares,
            "urgent": queue.urgent or 0,
        }
        if job.status == JobStatus.ACTIVATED
        else None,
    }


def _silence(job: JobColumns) -> tuple[datetime, timedelta] | None:
    """Since when its pilot is silent, and for how long it may be: what the watchdog asks of the job."""
    queue = Queue.objects.filter(pk=job.site).first()
    view = job_timeouts.JobView(
        job.id,
        JobStatus(job.status),
        job.creation_time,
        job.state_change_time or job.creation_time,
        job.heartbeat_at,
        job.prod_source_label or "",
        job.current_priority,
        str(queue.data.get("workflow") or "") if queue else "",
        overdue.queue_view(queue) if queue else job_timeouts.QueueView(job.site or ""),
    )
    return job_timeouts.silence(view, timeout_limits.job_settings(job.vo or ""))


def _error_words(job: JobColumns) -> str:
    """What is known of why a job ended badly, in a sentence; "" for others."""
    error = error_of(job.__dict__)
    if error is None:
        return ""
    return f"{error.sentence} ({error.key})"


def _not_begun(job: JobColumns, reached: Mapping[str, datetime]) -> str:
    """Why a job ended before its payload began: what its pilot says, else that it never told of its start."""
    error = error_of(job.__dict__)
    if error is None or error.before_payload:
        return error.before_payload if error is not None else ""
    began = JobStatus.RUNNING in reached or error.component in PAYLOAD or JobStatus.HOLDING not in reached
    return "" if began else "its pilot ended it before the payload began"


def _as_json(chosen: ChosenFact | None) -> Mapping[str, Any] | None:
    if chosen is None:
        return None
    return {"id": chosen.verdict, "at": chosen.at, "place": chosen.place, "of": chosen.of, "weight": chosen.weight}


def _lacking(job: JobColumns, site: str) -> Lacking:
    walls, channel = Queue.objects.filter(pk=site).values_list("data__unwalled", "data__no_channel").first() or ("", "")
    if walls and User.objects.filter(username=job.user or "", is_superuser=True, is_active=True).exists():
        walls = ""
    return Lacking(
        str(walls or ""), str(channel or "") if job.event_service in BY_CHANNEL else "", away_inputs.of_job(job.id)
    )


def decision_on(job: JobColumns) -> VerdictRecord | None:
    """The decision on jobs of the task that held when the job was made: the latest that is not later. One statement.

    None for a merge job, which goes to its files: no broker was asked among queues.
    """
    if not job.task_id or not job.site or job.processing_type == MERGES:
        return None
    made = VerdictRecord.objects.filter(task_id=job.task_id, kind="job", first_at__lte=job.creation_time)
    return made.defer("skipped", "needs", "facts").order_by("-id").first()


def choice_of(job: JobColumns, verdict: VerdictRecord | None) -> ChosenFact | None:
    """The job's queue among those that a decision chose; None when it is not there.

    A decision that was made again later with the same queues has the weights of the last time.
    """
    if verdict is None:
        return None
    for place, (site, weight, *more) in enumerate(verdict.chosen, 1):
        if site == job.site or site.startswith(f"{job.site}/"):
            factors = more[0] if more and isinstance(more[0], dict) else {}
            again = verdict.at if verdict.at > job.creation_time else None
            at = job.creation_time if again else verdict.at
            return ChosenFact(
                verdict.id, at, place, len(verdict.chosen), float(weight), tuple(sorted(factors.items())), again
            )
    return None


def _queue(job: JobColumns) -> QueueFact:
    """What is sent before a job at its site: line after line, in each by priority and age. Of the same label or not."""
    order, line = line_order(), of_job(job.processing_type, job.special_handling, job.gshare, job.work_queue_id)
    before = list(order.names[: order.place_of(line)])
    values = {"site": job.site, "priority": -(job.current_priority or 0), "job": job.id, "line": line, "before": before}
    of_line = _OF_LINE if line in order.places else _OF_NO_LINE
    with connection.cursor() as cursor:
        cursor.execute(_OWN.format(of_line=of_line), values)
        own = cursor.fetchone()[0]
        if not before:
            return QueueFact(own=own, urgent=None)
        cursor.execute(_BEFORE, values)
        jobs = dict(cursor.fetchall())
    urgent = jobs.pop(URGENT, 0)
    kind = "" if not order.has_shares else "work queue" if order.is_of_queues else "share"
    first = next(iter(jobs), "")
    if first and kind == "work queue":
        first = WorkQueue.objects.filter(pk=queue_of(first) or 0).values_list("name", flat=True).first() or first
    return QueueFact(sum(jobs.values()), first.removeprefix(of_share("")), own, urgent, kind)
