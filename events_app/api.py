"""PanDA's calls on ranges of events. No job of this site has ranges yet: it gets none, and no range is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse

from events_app.models import Event
from events_app.rules.range_ids import RangeIdError, parse_range_id
from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Id, JsonList, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, StatusCode, envelope, legacy, list_of, number, refused
from tasks_app.models import Job

MOST = 100_000
"""Ranges in one call."""
IGNORED = ("running", "transferring")
NOT_YET = "this site does not hand out ranges of events yet"


class AcquireRangesParams(Params):
    job_id = Id(required=False, help_text="or pandaID, as harvester says")
    jobset_id = Number(required=False)
    task_id = Number(required=False)
    n_ranges = Number(required=False)
    pandaID = Id(required=False)


class UpdateRangesParams(Params):
    event_ranges = JsonList(help_text="of ranges (version 0), or of files with their ranges (1)")
    version = Number(required=False)


class CountRangesParams(Params):
    job_id = Id()
    jobset_id = Number(required=False)
    task_id = Number(required=False)


class LegacyGetParams(Params):
    pandaID = Id()
    jobsetID = Text(required=False)
    taskID = Text(required=False)
    nRanges = Text(required=False)


class LegacyUpdateParams(Params):
    eventRanges = JsonList(help_text="of ranges (version 0), or of files with their ranges (1)")
    version = Text(required=False)


def _available(ask: Ask, job_id: int | None) -> int:
    """Ranges that wait for a job of the caller's. Raises BadCallError, PermissionDenied."""
    if job_id is None:
        raise BadCallError("job_id is missing")
    job = Job.objects.filter(pk=job_id).values_list("site", "task_id", "jobset_id").first()
    if job is None or (ask.caller.site and job[0] != ask.caller.site):
        raise PermissionDenied("the job is not yours")
    _, task_id, jobset_id = job
    if task_id is None or jobset_id is None:
        return 0
    return Event.objects.filter(task_id=task_id, job_id=jobset_id, status=0, attempt__gt=0).count()


def _updated(items: list[Any]) -> list[bool | None]:
    """The answer to each range, in order: every range is unknown; ranges that are under way are not checked."""
    if len(items) > MOST:
        raise BadCallError(f"there are {len(items)} entries; at most {MOST} are taken at once")
    found: list[bool | None] = []
    for item in items:
        ranges = item.get("eventRanges") if isinstance(item, dict) and "zipFile" in item else [item]
        if not isinstance(ranges, list):
            raise BadCallError("eventRanges of a zipFile must be a JSON list")
        found += [_answer(one) for one in ranges]
    return found


def _answer(said: Any) -> bool | None:
    if not isinstance(said, Mapping):
        return False
    try:
        parse_range_id(said.get("eventRangeID"))
    except RangeIdError:
        return False
    return None if said.get("eventStatus") in IGNORED else False


@call("event/acquire_event_ranges", "POST", Right.PILOT, AcquireRangesParams)
def acquire_event_ranges(ask: Ask) -> HttpResponse:
    """Fetch ranges of events for a job."""
    if _available(ask, ask.given.get("job_id", ask.given.get("pandaID"))):
        return refused(NOT_YET, {"StatusCode": int(StatusCode.FAILED)})
    return envelope({"StatusCode": 0, "eventRanges": []})


@call("event/update_event_ranges", "POST", Right.PILOT, UpdateRangesParams)
def update_event_ranges(ask: Ask) -> HttpResponse:
    """Report on ranges of events: true, false or null of each, in their order."""
    return envelope({"StatusCode": 0, "Returns": _updated(ask.given["event_ranges"]), "Command": {}})


@call("event/get_available_event_range_count", "GET", Right.PILOT, CountRangesParams)
def get_available_event_range_count(ask: Ask) -> HttpResponse:
    """How many ranges of events wait for a job."""
    return envelope(_available(ask, ask.given["job_id"]))


@call("getEventRanges", "POST", Right.PILOT, LegacyGetParams, old=True, hot=True)
def get_event_ranges(ask: Ask) -> HttpResponse:
    """Fetch ranges of events for a job."""
    if _available(ask, number(ask.given, "pandaID", 1)):
        return legacy(StatusCode.FAILED, NOT_YET)
    return legacy(eventRanges=[])


@call("updateEventRanges", "POST", Right.PILOT, LegacyUpdateParams, old=True, hot=True)
def update_event_ranges_legacy(ask: Ask) -> HttpResponse:
    """Report on ranges of events: true, false or null of each, in their order."""
    return legacy(Returns=_updated(list_of(ask.given, "eventRanges")), Command={})
