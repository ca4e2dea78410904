"""Reports on many jobs in one call, as harvester sends them: v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from brokerage_app.grid import pilotcalls
from jedisite.identity.callers import Caller, Right
from tasks_app.api.panda.call_params import JsonList, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.pilot_calls import report_of
from tasks_app.api.panda.wire import BadCallError, StatusCode, envelope, list_of
from tasks_app.dispatch.bulk_reports import Answer, update_jobs
from tasks_app.dispatch.reports import KILL, OtherAttemptError, Report

MAX_REPORTS = 1000


class BulkParams(Params):
    job_list = JsonList(help_text=f"up to {MAX_REPORTS} objects with the parameters of pilot/update_job")
    harvester_id = Text(required=False)


@call("pilot/update_jobs_bulk", "POST", Right.PILOT, BulkParams, hot=True)
def update_jobs_bulk(ask: Ask) -> HttpResponse:
    """Report on many jobs.

    Each report is judged alone; the answer is a list of answers as pilot/update_job gives them, in the same order.
    """
    items = list_of(ask.given, "job_list")
    if len(items) > MAX_REPORTS:
        raise BadCallError(f"job_list has {len(items)} reports; the limit is {MAX_REPORTS}")
    return envelope([_envelope(*answer) for answer in answers_to(ask.caller, items)])


def answers_to(caller: Caller, items: list[Any]) -> list[tuple[StatusCode, str]]:
    """Book reports; of each: a code, and the command for the pilot or the sentence that says why it was not taken."""
    answers: list[tuple[StatusCode, str]] = [(StatusCode.OK, "")] * len(items)
    reports: dict[int, Report] = {}
    for n, item in enumerate(items):
        try:
            reports[n] = report_of(caller, _object(n, item))
        except BadCallError as exc:
            answers[n] = (StatusCode.INVALID, str(exc))
    for n, answer in zip(reports, update_jobs(list(reports.values())), strict=True):
        answers[n] = _said(answer)
    if caller.site and reports:
        pilotcalls.count(caller.site, updated=len(reports))
    return answers


def _said(answer: Answer) -> tuple[StatusCode, str]:
    if isinstance(answer, OtherAttemptError):
        return StatusCode.OK, KILL  # harvester understands no list of commands
    if isinstance(answer, str):
        return StatusCode.OK, answer
    # One answer for jobs of others and for unknown ones, so that nobody learns which jobs exist.
    return StatusCode.PERMISSION, "the job is not yours"


def _object(n: int, item: Any) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise BadCallError(f"job_list[{n}] must be a JSON object")
    return item


def _envelope(code: StatusCode, says: str) -> dict[str, Any]:
    """As PanDA answers one update. StatusCode and command also stand outside, where releases of harvester look for them."""
    taken = code is StatusCode.OK
    data = {"StatusCode": int(code), "command": says} if taken else {"StatusCode": int(code), "ErrorDiag": says}
    return {"success": taken, "message": "" if taken else says, "data": data, **data}
