"""PanDA's v1 calls that pilots make all the time: thin views without the REST framework's machinery.

Every answer is `{"success", "message", "data"}`; what PanDA's callers must be able to read comes with status 200.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from brokerage_app import pilotcalls
from jedisite.identity import Caller, Right, bearer, caller_of_token
from jedisite.problems import strict_json
from tasks_app.pilots.dispatch import Request, get_jobs
from tasks_app.pilots.report import NotYoursError, Proof, Report, UnknownJobError, update_job

MAX_JOBS = 100
STATES = ("starting", "running", "finished", "failed", "holding", "transferring")


class BadCallError(ValueError):
    """A parameter is missing or wrong: the sentence names it."""


def envelope(data: Any = None, *, message: str = "", success: bool = True, status: int = 200) -> JsonResponse:
    return JsonResponse({"success": success, "message": message, "data": data}, status=status)


def refused(message: str, status: int = 200) -> JsonResponse:
    return envelope(message=message, success=False, status=status)


def body_of(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a request; a gzip body is known by its first bytes. Raises BadCallError."""
    data = request.body
    if data[:2] == b"\x1f\x8b":
        data = _unpacked(data)
    try:
        body = strict_json(data)
    except ValueError as exc:
        raise BadCallError(f"the body is not valid JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise BadCallError("the body is not a JSON object")
    return body


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacker.decompress(data, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    except (zlib.error, gzip.BadGzipFile) as exc:
        raise BadCallError(f"the body is not gzip: {exc}") from exc
    if unpacker.unconsumed_tail:
        raise BadCallError(f"the unpacked body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes")
    return found


def pilot_call(view: Callable[[Caller, dict[str, Any]], JsonResponse]) -> Callable[[HttpRequest], JsonResponse]:
    """A POST with a pilot's token and a JSON object."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest) -> JsonResponse:
        token = bearer(request)
        caller = caller_of_token(token) if token else None
        if caller is None:
            return refused("a valid bearer token is needed", 401)
        if not caller.may(Right.PILOT):
            return refused("only pilots may call this", 403)
        if request.method != "POST":
            return refused("only POST is answered here", 405)
        try:
            return view(caller, body_of(request))
        except BadCallError as exc:
            return refused(str(exc), 400)

    guarded.right = Right.PILOT  # type: ignore[attr-defined]
    return guarded


def is_alive(request: HttpRequest) -> JsonResponse:
    return envelope(message="alive")


is_alive.right = Right.NOTHING  # type: ignore[attr-defined]


def text(body: Mapping[str, Any], name: str, length: int = 250) -> str:
    """A text parameter, "" when absent; cut to `length`."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise BadCallError(f"{name} must be a text")
    return str(value)[:length]


def number(body: Mapping[str, Any], name: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """A whole number, None when absent; decimals and texts of numbers are taken as PanDA takes them."""
    value = body.get(name)
    if value is None or value == "":
        return None
    try:
        found = int(float(value)) if not isinstance(value, int) else value
    except (TypeError, ValueError, OverflowError) as exc:
        raise BadCallError(f"{name} must be a number, not {str(value)[:50]!r}") from exc
    if isinstance(value, bool) or not least <= found <= most:
        raise BadCallError(f"{name} must be a number from {least} to {most}, not {found}")
    return found


@pilot_call
def acquire_jobs(caller: Caller, body: dict[str, Any]) -> JsonResponse:
    site = text(body, "site_name", 128)
    if not site:
        raise BadCallError("site_name is missing")
    if caller.site and caller.site != site:
        return refused(f"this token is for the queue {caller.site}", 403)
    request = Request(
        site,
        text(body, "prod_source_label", 20),
        number(body, "n_jobs", 1, MAX_JOBS) or 1,
        text(body, "node", 128),
        text(body, "worker_id", 80),
        caller.name,
    )
    jobs = get_jobs(request)
    pilotcalls.count(site, got=1)
    if not jobs:
        return refused("no jobs in PanDA")
    return envelope({"StatusCode": 0, "jobs": jobs})


def moment(body: Mapping[str, Any], name: str) -> datetime | None:
    """A time given as `YYYY-mm-dd HH:MM:SS` in UTC; anything else is not a time and is left out."""
    value = body.get(name)
    if not isinstance(value, str):
        return None
    try:
        return datetime.strptime(value[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A JSON object, given as such or as its text."""
    value = body.get(name)
    if value in (None, ""):
        return {}
    if isinstance(value, str):
        try:
            value = strict_json(value.encode())
        except ValueError as exc:
            raise BadCallError(f"{name} is not valid JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise BadCallError(f"{name} must be a JSON object")
    return value


def _metadata(value: Any) -> Any:
    """The payload's own report: JSON, or its text; what is not JSON stays a text, so that the job's end is not lost."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        with suppress(ValueError):
            return strict_json(value.encode())
    return value or None


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
        Proof(number(body, "fence"), text(body, "job_secret", 100), caller.site, number(body, "attempt_nr", 0, 32767)),
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
        outputs=_object(body, "job_output_report"),
        metadata=_metadata(body.get("meta_data")),
        by=caller.name,
    )


@pilot_call
def update_one_job(caller: Caller, body: dict[str, Any]) -> JsonResponse:
    try:
        command = update_job(report_of(caller, body))
    except (NotYoursError, UnknownJobError):
        # One answer for both, so that nobody learns which jobs exist.
        return refused("the job is not yours", 403)
    if caller.site:
        pilotcalls.count(caller.site, updated=1)
    return envelope({"StatusCode": 0, "command": command})
