"""What PanDA's pilots, and programs of its old times, ask and tell by legacy calls besides fetching and reporting jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from brokerage_app.grid import pilotcalls
from jedisite.identity.callers import Right, needs
from jedisite.web.choices import Choice
from tasks_app.api.panda.call_params import Id, JsonList, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.legacy import report_of
from tasks_app.api.panda.wire import BadCallError, StatusCode, is_plain_number, legacy
from tasks_app.dispatch import worker_moves
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import NO_COMMAND, OTHER_ATTEMPT, OtherAttemptError, Report
from tasks_app.models import Job, JobArchive

MOST_REPORTS = 1000
MOST_IDS = 1000
UNKNOWN = "unknown"


class LegacyBulkParams(Params):
    jobList = JsonList(help_text="objects as for updateJob, at most 1000")
    harvester_id = Text(required=False)


class WorkerParams(Params):
    workerID = Id()
    harvesterID = Text(max_length=50)
    status = Choice(choices=("started", "finished"))
    site = Text(required=False, max_length=128, help_text="the queue")
    node_id = Text(required=False)


class IdsParams(Params):
    ids = Text(max_length=20 * MOST_IDS, help_text="job numbers, separated by blanks")


class CheckParams(Params):
    pandaIDs = Text(max_length=20 * MOST_IDS, help_text="job numbers, separated by commas")


class KeyPairParams(Params):
    publicKeyName = Text()
    privateKeyName = Text()


class ProxyParams(Params):
    role = Text(required=False)
    dn = Text(required=False)


@call("updateJobsInBulk", "POST", Right.PILOT, LegacyBulkParams, old=True)
def update_jobs_in_bulk(ask: Ask) -> HttpResponse:
    """Report on several jobs: [true, answers], each as of updateJob and written as a text."""
    given = ask.given["jobList"]
    if len(given) > MOST_REPORTS:
        raise BadCallError(f"jobList has {len(given)} entries, the limit is {MOST_REPORTS}")
    reports: list[tuple[int, Report]] = []
    answers: list[HttpResponse] = [legacy() for _ in given]
    for place, body in enumerate(given):
        try:
            if not isinstance(body, Mapping):
                raise BadCallError(f"jobList[{place}] is not an object")
            reports.append((place, report_of(ask.caller, body)))
        except BadCallError as exc:
            answers[place] = legacy(StatusCode.INVALID, str(exc))
    for (place, _), said in zip(reports, update_jobs([report for _, report in reports]), strict=True):
        answers[place] = _answer_to(said)
    if ask.caller.site:
        pilotcalls.count(ask.caller.site, updated=len(reports))
    return HttpResponse(json.dumps([True, [one.content.decode() for one in answers]]), content_type="application/json")


def _answer_to(said: str | Exception) -> HttpResponse:
    if isinstance(said, OtherAttemptError):
        return legacy(command=OTHER_ATTEMPT)
    if isinstance(said, Exception):
        return legacy(StatusCode.ROLE, "the job is not yours")
    return legacy(command=said or NO_COMMAND)


@call("updateWorkerPilotStatus", "POST", Right.PILOT, WorkerParams, old=True)
def update_worker_pilot_status(ask: Ask) -> HttpResponse:
    """A pilot tells of itself: that it has started, or has ended."""
    given, site = ask.given, ask.caller.site
    if site and given.get("site", site) != site:
        raise PermissionDenied(f"this token is for the queue {site}")
    queue, node = site or given.get("site", ""), given.get("node_id", "")
    noted = worker_moves.pilot_status(given["harvesterID"], given["workerID"], given["status"], site=queue, node=node)
    # Pilots look at no answer here; who started them may be nobody that we know.
    return legacy() if noted else legacy(says="unknown worker")


@call("getStatus", "POST", Right.PILOT, IdsParams, old=True)
def get_status(ask: Ask) -> HttpResponse:
    """States of jobs as a form: StatusCode=0&status=running+finished&attemptNr=1+2."""
    found = _states(ask, _ids(ask.given["ids"].split(), "ids"))
    said = {
        "StatusCode": 0,
        "status": " ".join(row["status"] for row in found),
        "attemptNr": " ".join(str(row["attemptNr"]) for row in found),
    }
    return HttpResponse(urlencode(said), content_type="text/plain")


@call("checkJobStatus", "POST", Right.PILOT, CheckParams, old=True)
def check_job_status(ask: Ask) -> HttpResponse:
    """States of jobs: {data: [{PandaID, status, attemptNr}, …]} in the order asked for."""
    return legacy(data=_states(ask, _ids(ask.given["pandaIDs"].split(","), "pandaIDs")))


def _ids(words: list[str], name: str) -> list[int]:
    if not 0 < len(words) <= MOST_IDS:
        raise BadCallError(f"{name}: 1 to {MOST_IDS} numbers of jobs are needed")
    with suppress(ValueError):
        if all(is_plain_number(word) and 0 < int(word) < 2**63 for word in words):
            return [int(word) for word in words]
    raise BadCallError(f"{name}: {' '.join(words)[:50]!r} are not numbers of jobs")


def _states(ask: Ask, ids: list[int]) -> list[dict[str, Any]]:
    """Of each job its state; of jobs that are not there, or at other sites than the token's, "unknown"."""
    found: dict[int, tuple[str, int | None]] = {}
    for model in (JobArchive, Job):
        rows = model._default_manager.filter(pk__in=ids)
        if ask.caller.site:
            rows = rows.filter(site=ask.caller.site)
        found |= {number: (status, attempt) for number, status, attempt in rows.values_list("id", "status", "attempt")}
    states = [found.get(number, (UNKNOWN, None)) for number in ids]
    return [
        {"PandaID": number, "status": status, "attemptNr": attempt or 0}
        for number, (status, attempt) in zip(ids, states, strict=True)
    ]


@call("getKeyPair", "POST", Right.PILOT, KeyPairParams, old=True)
def get_key_pair(ask: Ask) -> HttpResponse:
    """Keys of an object store: this site keeps none."""
    return legacy(StatusCode.KEY_MISSING, f"this site keeps no key {ask.given['publicKeyName']}")


@call("getProxy", "POST", Right.PILOT, ProxyParams, old=True)
def get_proxy(ask: Ask) -> HttpResponse:
    """A proxy certificate: this site keeps none, tokens are used here."""
    return legacy(StatusCode.PROXY_ERROR, "this site keeps no proxy certificates")


@csrf_exempt
@needs(Right.NOTHING)
def no_such_call(request: HttpRequest, name: str) -> HttpResponseBase:
    """A page that says 404 would end a pilot."""
    return legacy(StatusCode.FAILED, f"there is no call {name[:50]} here")
