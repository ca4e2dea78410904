"""The calls of PanDA's own pilots: legacy names, forms or packed JSON, and always an answer with a StatusCode.

These pilots carry no secrets and read no refusals: a job's end is taken even when some number in its report makes no
sense, which is then left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from rest_framework import serializers

from brokerage_app.grid import pilotcalls
from jedisite.identity.callers import Caller, Right
from jedisite.web.choices import Choice
from tasks_app.api.panda.call_params import Id, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.pilot_calls import MAX_JOBS, MOST_NAMES, STATES, metadata_of, names_in
from tasks_app.api.panda.wire import BadCallError, StatusCode, legacy, moment, number, object_of, text
from tasks_app.dispatch.closed_queues import why_closed
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.dispatch.reports import (
    NO_COMMAND,
    OTHER_ATTEMPT,
    NotYoursError,
    OtherAttemptError,
    Proof,
    Report,
    UnknownJobError,
    update_job,
)
from tasks_app.dispatch.unwalled import lacks

ANY_LABEL = ("ANY", "unified")


class GetJobParams(Params):
    siteName = Text(max_length=128, help_text="the queue")
    prodSourceLabel = Text(required=False, help_text="kind of jobs; any when it is absent, ANY or unified")
    computingElement = Text(required=False)
    node = Text(required=False, help_text="host of the caller")
    nJobs = Number(required=False, min_value=1, max_value=MAX_JOBS, help_text="if given, the answer is a list")
    harvester_id = Text(required=False)
    worker_id = Text(required=False, help_text="the batch job in which the pilot runs")


class UpdateJobParams(Params):
    jobId = Id()
    state = Choice(choices=STATES)
    attemptNr = Number(help_text="attempt number of the job")
    siteName = Text(required=False)
    node = Text(required=False)
    pilotID = Text(required=False)
    batchID = Text(required=False)
    startTime = Text(required=False, help_text="seconds since 1970, or YYYY-mm-dd HH:MM:SS; endTime likewise")
    coreCount = Number(required=False)
    cpuConsumptionTime = Number(required=False, help_text="seconds")
    maxRSS = Number(required=False, help_text="kB; avgRSS, maxPSS and avgPSS likewise")
    nEvents = Number(required=False)
    jobMetrics = Text(required=False)
    pilotTiming = Text(required=False)
    pilotErrorCode = serializers.IntegerField(required=False, help_text="negative if another attempt may help")
    pilotErrorDiag = Text(required=False)
    exeErrorCode = serializers.IntegerField(required=False)
    exeErrorDiag = Text(required=False)
    transExitCode = Text(required=False)
    xml = Text(required=False, help_text="{LFN: {guid, fsize, adler32, surl}}, JSON text")
    metaData = Text(required=False, help_text="the payload's own report, JSON text")


@call("getJob", "POST", Right.PILOT, GetJobParams, old=True, hot=True)
def get_job(ask: Ask) -> HttpResponse:
    """Fetch a job for a queue: its fields stand beside StatusCode; 20 says that there is none."""
    body = ask.given
    site = text(body, "siteName", 128)
    if not site:
        raise BadCallError("siteName is missing")
    if ask.caller.site and ask.caller.site != site:
        raise PermissionDenied(f"this token is for the queue {ask.caller.site}")
    count = number(body, "nJobs", 1, MAX_JOBS)
    label = text(body, "prodSourceLabel", 20)
    missing = lacks(site)
    request = Request(
        site,
        "" if label in ANY_LABEL else label,
        count or 1,
        text(body, "node", 128),
        ask.caller.worker or text(body, "worker_id", 80),
        ask.caller.name,
        with_secret=False,
        harvester=text(body, "harvester_id", 50),
        administrators_only=missing.walls,
        without_ranges=missing.channel,
        begins_with=ask.caller.begins_with,
    )
    closed = why_closed(site)
    jobs = [] if closed else get_jobs(request)
    pilotcalls.count(site, got=1)
    if not jobs:
        return legacy(StatusCode.NO_JOBS, closed or "no jobs in PanDA")
    for job in jobs:
        job["transformation"] = address_of(job["transformation"] or "", job["inFiles"].split(","))
    return legacy(**jobs[0]) if count is None else legacy(jobs=jobs)


def address_of(transformation: str, inputs: Sequence[str]) -> str:
    """Where a pilot finds a transform: PanDA's take addresses only, of servers that they know, or the name of an input."""
    if not transformation or "://" in transformation or transformation in inputs:
        return transformation
    return f"{settings.JEDI_TRANSFORM_URL}/{transformation}"


@call("updateJob", "POST", Right.PILOT, UpdateJobParams, old=True, hot=True)
def update_one_job(ask: Ask) -> HttpResponse:
    """Report on a job: alive, or how it ended. The answer's command is NULL when there is nothing to do."""
    answer = booked(ask.caller, ask.given)
    if ask.caller.site:
        pilotcalls.count(ask.caller.site, updated=1)
    return answer


def booked(caller: Caller, body: Mapping[str, Any]) -> HttpResponse:
    """The answer to one report. Raises BadCallError, PermissionDenied."""
    try:
        command = update_job(report_of(caller, body))
    except OtherAttemptError:
        command = OTHER_ATTEMPT
    except (NotYoursError, UnknownJobError) as exc:
        # One answer for both, so that nobody learns which jobs exist.
        raise PermissionDenied("the job is not yours") from exc
    return legacy(command=command or NO_COMMAND)


def report_of(caller: Caller, body: Mapping[str, Any]) -> Report:
    """The report in a call's parameters. Raises BadCallError."""
    job_id = number(body, "jobId", 1)
    if job_id is None:
        raise BadCallError("jobId is missing")
    return Report(
        job_id,
        text(body, "state", 20),
        Proof(site=caller.site, attempt=number(body, "attemptNr", 0, 32767), worker=caller.worker),
        measures={
            "cpu_time_s": _number(body, "cpuConsumptionTime"),
            "max_rss_kb": _number(body, "maxRSS"),
            "avg_rss_kb": _number(body, "avgRSS"),
            "max_pss_kb": _number(body, "maxPSS"),
            "avg_pss_kb": _number(body, "avgPSS"),
            "cores": _number(body, "coreCount", 0, 32767),
            "events": _number(body, "nEvents"),
            "node": _text(body, "node", 128),
            "pilot_id": _text(body, "pilotID", 200),
            "batch_id": _text(body, "batchID", 80),
            "job_metrics": _text(body, "jobMetrics", 500),
            "pilot_timing": _text(body, "pilotTiming", 100),
        },
        errors={
            "pilot_error_code": _number(body, "pilotErrorCode", -(2**31), 2**31 - 1),
            "pilot_error_diag": _text(body, "pilotErrorDiag", 500),
            "exe_error_code": _number(body, "exeErrorCode", -(2**31), 2**31 - 1),
            "exe_error_diag": _text(body, "exeErrorDiag", 500),
            "trans_exit_code": _text(body, "transExitCode", 128),
        },
        start_time=moment(body, "startTime"),
        end_time=moment(body, "endTime"),
        outputs={lfn: _output(said) for lfn, said in object_of(body, "xml").items()},
        metadata=metadata_of(body.get("metaData")),
        by=caller.name,
        corrupted=names_in(_text(body, "corruptedFiles", MOST_NAMES) or ""),
    )


def _output(said: Any) -> Any:
    """What a pilot says of one file. PanDA's pilots leave the guid of most outputs to others."""
    if isinstance(said, dict) and said.get("guid") in (None, "", "NULL"):
        return said | {"guid": str(uuid.uuid4())}
    return said


def _number(body: Mapping[str, Any], name: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
    with suppress(BadCallError):
        return number(body, name, least, most)
    return None


def _text(body: Mapping[str, Any], name: str, length: int) -> str | None:
    with suppress(BadCallError):
        return text(body, name, length) or None
    return None
