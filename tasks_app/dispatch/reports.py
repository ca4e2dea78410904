"""Hot path: what pilots report. A heartbeat is one UPDATE; a final report is kept for the adder and answered at once.

A report counts when it comes from whom the job was handed to. A job that was handed out with a secret takes only reports
that carry it and the fence of that hand-out, and name no other attempt; one that was handed out without, to PanDA's own
pilots, those that name its attempt and come with a token for its site.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.utils import timezone
from psycopg.types.json import Json
from psycopg.types.numeric import Int8

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, texts
from tasks_app.dispatch.report_masking import masked_reports
from tasks_app.domain.range_jobs import counted_by_ranges
from tasks_app.lifecycle.job_reports import ADVANCE, CORRUPT, FINAL, FINAL_WITH_METADATA

NO_COMMAND = "NULL"
KILL = "tobekilled"
OTHER_ATTEMPT = f"badattemptnr,{KILL}"
"""Why, and what pilots understand of it: nobody waits for what they do."""
FINAL_REPORTS = ("finished", "failed")
TOWARDS_END = ("holding", "transferring")
"""What pilots and harvester say while outputs are on their way: for us the job runs until its final report."""
ALIVE_REPORTS = ("starting", "running", *TOWARDS_END)
ENDED_OTHERWISE = ("failed", "cancelled", "closed")
LONGEST_AGO, LATEST = timedelta(days=365), timedelta(days=1)
"""Times that pilots say of their jobs count when they are not further from now, before and behind."""

MEASURES: dict[str, str] = {
    "cpu_time_s": "cpuconsumptiontime",
    "max_rss_kb": "maxrss",
    "avg_rss_kb": "avgrss",
    "max_pss_kb": "maxpss",
    "avg_pss_kb": "avgpss",
    "cores": "actualcorecount",
    "events": "nevents",
    "node": "modificationhost",
    "pilot_id": "pilotid",
    "batch_id": "batchid",
    "job_metrics": "jobmetrics",
    "pilot_timing": "pilottiming",
    "sub_status": "jobsubstatus",
}
"""What a report may say of a job, and the column it goes to. An absent measure leaves the column as it is."""

ERRORS: dict[str, str] = {
    "pilot_error_code": "piloterrorcode",
    "pilot_error_diag": "piloterrordiag",
    "exe_error_code": "exeerrorcode",
    "exe_error_diag": "exeerrordiag",
    "trans_exit_code": "transexitcode",
}


class NotYoursError(PermissionError):
    """The job is not the caller's: it was handed to somebody else, or to nobody."""


class OtherAttemptError(NotYoursError):
    """The report is about another attempt of a job that is the caller's: by its secret or, handed out without, by its site."""


class UnknownJobError(LookupError):
    """There is no such job."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How a pilot shows that a job is its own: its site, and the fence and secret; or the attempt, of a job that was
    handed out without a secret. With a token that is for one worker, the job must have gone to that one.

    With a secret the attempt may be left out; if it is named, it must be the job's.
    """

    fence: int | None = None
    secret: str = ""
    site: str = ""
    attempt: int | None = None
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    job_id: int
    status: str
    proof: Proof
    measures: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Any] = field(default_factory=dict)
    start_time: datetime | None = None
    end_time: datetime | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    metadata: Any = None
    by: str = "pilot"
    corrupted: Sequence[str] = ()
    """Inputs that a job cannot read which merges outputs of ranges of events."""


# How a job shows that it is the caller's: by what it was handed out with, or by its attempt.
_BY_SECRET = "fence = %(fence)s AND secret_hash = %(digest)s"
_SAME_ATTEMPT = "coalesce(attemptnr, 0) = %(attempt)s"
_BY_ATTEMPT = "secret_hash IS NULL AND attemptnr = %(attempt)s"
# Whether the job is the caller's, for any kind of proof. NULL site: any queue may be served by this token; so for workers.
_HERE = (
    "pandaid = %(job)s AND (%(site)s::text IS NULL OR computingsite = %(site)s)"
    " AND (%(worker)s::text IS NULL OR workerid = %(worker)s)"
)
MINE = (
    f"{_HERE} AND CASE WHEN %(fence)s::bigint IS NULL THEN {_BY_ATTEMPT}"
    f" ELSE {_BY_SECRET} AND (%(attempt)s::bigint IS NULL OR {_SAME_ATTEMPT}) END"
)
# Whether it would be, were the report about the attempt that is on.
AT_OTHER_ATTEMPT = (
    f"{_HERE} AND CASE WHEN %(fence)s::bigint IS NULL THEN secret_hash IS NULL AND attemptnr <> %(attempt)s"
    f" ELSE {_BY_SECRET} AND NOT {_SAME_ATTEMPT} END"
)

# Where {given} is stand the measures and errors of a report, where {mine} is the condition for its kind of proof: only what
# it has, since each parameter costs time.
_HEARTBEAT = """
UPDATE jobs SET heartbeat_at = clock_timestamp(){given}
 WHERE {mine} AND jobstatus = %(status)s
RETURNING commandtopilot
"""
_HEARTBEAT_WITH_START = _HEARTBEAT.replace("{given}", ", starttime = coalesce(starttime, %(start)s){given}")


def measured(key: str, value: str) -> str:
    """The assignment of a measure. Events of jobs that take ranges are counted when those are reported: PanDA's pilot counts
    ranges here."""
    return f"{MEASURES[key]} = {counted_by_ranges(value) if key == 'events' else value}"


@lru_cache(maxsize=256)
def _with(statement: str, mine: str, measures: tuple[str, ...], errors: tuple[str, ...] | None = None) -> str:
    """A statement that sets these measures, and if errors are given all of them: those that are not named to NULL."""
    given = [measured(key, f"%({key})s") for key in measures]
    if errors is not None:
        given += [f"{column} = {f'%({key})s' if key in errors else 'NULL'}" for key, column in ERRORS.items()]
    return statement.replace("{mine}", mine).replace("{given}", "".join(f", {assignment}" for assignment in given))


def _mine(proof: Proof) -> str:
    """What MINE comes to for this proof."""
    here = f"pandaid = %(job)s{' AND computingsite = %(site)s' if proof.site else ''}"
    here += " AND workerid = %(worker)s" if proof.worker else ""
    if proof.fence is None:
        return f"{here} AND {_BY_ATTEMPT}"
    return f"{here} AND {_BY_SECRET}" + ("" if proof.attempt is None else f" AND {_SAME_ATTEMPT}")


_WHY = (
    f"SELECT jobstatus, commandtopilot, coalesce({MINE}, false), {AT_OTHER_ATTEMPT} FROM jobs WHERE pandaid = %(job)s"  # noqa: S608
)


def update_job(report: Report) -> str:
    """Book a report. Returns the command for the pilot: "NULL" or "tobekilled".

    The same report twice changes nothing the second time. Raises UnknownJobError, NotYoursError; then nothing has changed.
    """
    if report.status in FINAL_REPORTS:
        report = masked_reports({0: report}).get(0, report)
        note_corrupted(report)
        return _final(report, values_of(report))
    values = values_of(report)
    if report.status not in ALIVE_REPORTS:
        return _explain(values)
    note_corrupted(report)
    mine, measures = _mine(report.proof), present(report.measures, MEASURES)
    heartbeat = _HEARTBEAT if values["start"] is None else _HEARTBEAT_WITH_START
    with hot_cursor() as cursor:
        cursor.execute(_with(heartbeat, mine, measures), values)
        row = cursor.fetchone()
        if row is None:
            cursor.execute(_with(ADVANCE, mine, measures), values)
            row = cursor.fetchone()
    return (row[0] or NO_COMMAND) if row is not None else _explain(values)


def note_corrupted(report: Report) -> None:
    """Keep which inputs are corrupted, if a report names any, before it counts: whoever ends the job reads that."""
    if report.corrupted:
        values = {**values_of(report), "corrupted": texts(report.corrupted)}
        with hot_cursor() as cursor:
            cursor.execute(CORRUPT.replace("{mine}", _mine(report.proof)), values)


def values_of(report: Report) -> dict[str, Any]:
    proof = report.proof
    start, end = _moments(report.start_time, report.end_time)
    return {
        "job": Int8(report.job_id),
        "status": "running" if report.status in TOWARDS_END else report.status,
        "fence": _whole(proof.fence),
        "digest": hashlib.sha256(proof.secret.encode()).digest(),
        "site": proof.site or None,
        "worker": proof.worker or None,
        "attempt": _whole(proof.attempt),
        "start": start,
        "end": end,
        "by": report.by,
        **{key: _whole(value) for key, value in report.measures.items() if value is not None and key in MEASURES},
        **{key: _whole(value) for key, value in report.errors.items() if value is not None and key in ERRORS},
    }


def _moments(*said: datetime | None) -> list[datetime | None]:
    """Times that a pilot says, unless its clock is so far off that durations would not fit into what is made of them.

    A clock that is ahead of ours is put right by as much as it shows: else a job that is lost later would end before it starts.
    """
    now = timezone.now()
    believed = [at if at and now - LONGEST_AGO < at < now + LATEST else None for at in said]
    ahead = max([timedelta(), *(at - now for at in believed if at)])
    return [at and at - ahead for at in believed]


def present(given: Mapping[str, Any], known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([key for key in known if given.get(key) is not None])


def _whole(value: Any) -> Any:
    """Numbers always as the same type: else psycopg prepares the statement anew for each mixture of small and large."""
    return Int8(value) if isinstance(value, int) else value


def _final(report: Report, values: dict[str, Any]) -> str:
    """One statement is a transaction of its own and spares two round trips."""
    values["outputs"] = Json(dict(report.outputs))
    statement = FINAL
    if report.metadata is not None:
        statement, values["metadata"] = FINAL_WITH_METADATA, Json(report.metadata)
    measures, errors = present(report.measures, MEASURES), present(report.errors, ERRORS)
    with hot_cursor() as cursor:
        cursor.execute(_with(statement, _mine(report.proof), measures, errors), values)
        moved = cursor.fetchone()
    if moved is None:
        return _explain(values)
    kick("adder", at_most_every_s=0.3)
    return NO_COMMAND


def _explain(values: dict[str, Any]) -> str:
    """Why a report moved nothing: not the caller's job, or one that has ended or is further on."""
    with hot_cursor() as cursor:
        cursor.execute(_WHY, values)
        row = cursor.fetchone()
    if row is None:
        raise UnknownJobError(f"there is no job {values['job']}")
    status, command, mine, other_attempt = row
    if other_attempt:
        raise OtherAttemptError(f"job {values['job']} is at another attempt")
    if not mine:
        raise NotYoursError(f"job {values['job']} is not yours")
    return unmoved(values["status"], status, command)


def unmoved(said: str, status: str, command: str | None) -> str:
    """The command for the pilot whose report `said` moved nothing, as its job is in `status`."""
    if said == "finished" and status in ENDED_OTHERWISE:
        return KILL  # it was given up before: its outputs are nobody's, and the pilot is not to leave them
    if said in FINAL_REPORTS:
        return NO_COMMAND  # said before: nothing is left to do for the pilot
    if status in ("sent", "starting", "running"):
        return command or NO_COMMAND
    return KILL
