"""What pilots ask for and report: v1."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from rest_framework import serializers

from brokerage_app.grid import pilotcalls
from jedisite.identity.callers import Caller, Right
from jedisite.web.choices import Choice
from jedisite.web.problems import strict_json
from tasks_app.api.panda.call_params import Flag, Id, JsonObject, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, envelope, moment, number, object_of, refused, text
from tasks_app.dispatch.closed_queues import why_closed
from tasks_app.dispatch.handing_out import Request, get_jobs
from tasks_app.dispatch.reports import (
    OTHER_ATTEMPT,
    NotYoursError,
    OtherAttemptError,
    Proof,
    Report,
    UnknownJobError,
    update_job,
)
from tasks_app.dispatch.unwalled import Lacks, lacks
from tasks_app.domain.killcodes import SubStatus

MAX_JOBS = 100
STATES = ("starting", "running", "finished", "failed", "holding", "transferring")


class AcquireParams(Params):
    site_name = Text(max_length=128, help_text="the queue")
    prod_source_label = Text(required=False, help_text="kind of jobs; any when it is absent")
    n_jobs = Number(required=False, min_value=1, max_value=MAX_JOBS, help_text="one when it is absent")
    node = Text(required=False, help_text="host of the caller")
    worker_id = Text(required=False, help_text="the batch job in which the pilot runs")
    with_secret = Flag(required=False, help_text="jobs come with a secret, and every report must carry it")
    administrators_only = Flag(required=False, help_text="payloads are not isolated: only jobs of administrators")


MOST_NAMES = 1_000_000
"""Characters of a list of names."""


class UpdateParams(Params):
    job_id = Id()
    job_status = Choice(choices=STATES)
    attempt_nr = Number(required=False, help_text="of the job; needed where it was handed out without a secret")
    fence = Number(required=False, help_text="as received with the job, with its secret")
    job_secret = Text(required=False, help_text="as received with the job")
    core_count = Number(required=False)
    cpu_consumption_time = Number(required=False, help_text="seconds")
    max_rss = Number(required=False, help_text="kB; avg_rss, max_pss and avg_pss likewise")
    node = Text(required=False)
    pilot_error_code = serializers.IntegerField(required=False)
    pilot_error_diag = Text(required=False)
    exe_error_code = serializers.IntegerField(required=False)
    exe_error_diag = Text(required=False)
    trans_exit_code = Text(required=False)
    job_output_report = JsonObject(required=False, help_text="{LFN: {guid, fsize, adler32, surl}}")
    meta_data = Text(required=False, help_text="the payload's own report, JSON text")
    corrupted_files = Text(
        required=False,
        max_length=MOST_NAMES,
        help_text="inputs that a job cannot read which merges outputs of ranges of events, with commas between",
    )


@call("pilot/acquire_jobs", "POST", Right.PILOT, AcquireParams, hot=True)
def acquire_jobs(ask: Ask) -> HttpResponse:
    """Fetch jobs for a queue."""
    caller, body = ask.caller, ask.given
    site = text(body, "site_name", 128)
    if not site:
        raise BadCallError("site_name is missing")
    if caller.site and caller.site != site:
        raise PermissionDenied(f"this token is for the queue {caller.site}")
    own = body.get("with_secret") is True
    # Ours say it themselves; PanDA's have no words for it.
    missing = Lacks() if own else lacks(site)
    request = Request(
        site,
        text(body, "prod_source_label", 20),
        number(body, "n_jobs", 1, MAX_JOBS) or 1,
        text(body, "node", 128),
        caller.worker or text(body, "worker_id", 80),
        caller.name,
        own,
        text(body, "harvester_id", 50),
        body.get("administrators_only") is True or missing.walls,
        caller.begins_with,
        missing.channel,
    )
    closed = why_closed(site)
    jobs = [] if closed else get_jobs(request)
    pilotcalls.count(site, got=1)
    if not jobs:
        return refused(closed or "no jobs in PanDA")
    return envelope({"StatusCode": 0, "jobs": jobs})


def metadata_of(value: Any) -> Any:
    """The payload's own report: JSON, or its text; what is not JSON stays a text, so that the job's end is not lost."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError):
            return strict_json(value.encode())
    return value or None


def names_in(said: str) -> list[str]:
    """Names with commas between."""
    return [name for name in said.split(",") if name]


def _sub_status(body: Mapping[str, Any]) -> str | None:
    """The pilot's own sub-status; not one of those that the site itself gives to jobs that it ends: brokers count them."""
    said = text(body, "job_sub_status", 80)
    return None if said in ("", *get_args(SubStatus)) else said


def report_of(caller: Caller, body: Mapping[str, Any]) -> Report:
    """The report in a call's parameters. Raises BadCallError."""
    job_id = number(body, "job_id", 1)
    if job_id is None:
        raise BadCallError("job_id is missing")
    status = text(body, "job_status", 20)
    if status not in STATES:
        raise BadCallError(f"job_status must be one of {', '.join(STATES)}, not {status!r}")
    return Report(
        job_id,
        status,
        Proof(
            number(body, "fence"),
            text(body, "job_secret", 100),
            caller.site,
            number(body, "attempt_nr", 0, 32767),
            caller.worker,
        ),
        measures={
            "cpu_time_s": number(body, "cpu_consumption_time"),
            "max_rss_kb": number(body, "max_rss"),
            "avg_rss_kb": number(body, "avg_rss"),
            "max_pss_kb": number(body, "max_pss"),
            "avg_pss_kb": number(body, "avg_pss"),
            "cores": number(body, "core_count", 0, 32767),
            "events": number(body, "n_events"),
            "node": text(body, "node", 128) or None,
            "pilot_id": text(body, "pilot_id", 200) or None,
            "batch_id": text(body, "batch_id", 80) or None,
            "job_metrics": text(body, "job_metrics", 500) or None,
            "pilot_timing": text(body, "pilot_timing", 100) or None,
            "sub_status": _sub_status(body),
        },
        errors={
            "pilot_error_code": number(body, "pilot_error_code", -(2**31), 2**31 - 1),
            "pilot_error_diag": text(body, "pilot_error_diag", 500) or None,
            "exe_error_code": number(body, "exe_error_code", -(2**31), 2**31 - 1),
            "exe_error_diag": text(body, "exe_error_diag", 500) or None,
            "trans_exit_code": text(body, "trans_exit_code", 128) or None,
        },
        start_time=moment(body, "start_time"),
        end_time=moment(body, "end_time"),
        outputs=object_of(body, "job_output_report"),
        metadata=metadata_of(body.get("meta_data")),
        by=caller.name,
        corrupted=names_in(text(body, "corrupted_files", MOST_NAMES)),
    )


@call("pilot/update_job", "POST", Right.PILOT, UpdateParams, hot=True)
def update_one_job(ask: Ask) -> HttpResponse:
    """Report on a job: alive, or how it ended."""
    caller, body = ask.caller, ask.given
    try:
        command = update_job(report_of(caller, body))
    except OtherAttemptError:
        command = OTHER_ATTEMPT
    except (NotYoursError, UnknownJobError) as exc:
        # One answer for both, so that nobody learns which jobs exist.
        raise PermissionDenied("the job is not yours") from exc
    if caller.site:
        pilotcalls.count(caller.site, updated=1)
    return envelope({"StatusCode": 0, "command": command})
