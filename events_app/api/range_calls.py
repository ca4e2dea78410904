"""What pilots and harvester ask and say of ranges: they fetch them, count them, and report on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse

from events_app.dispatch.handing_ranges import hand_out, waiting
from events_app.dispatch.range_accounts import Account, account
from jedisite.identity.callers import Caller, Right
from tasks_app.api.panda.call_params import Id, JsonList, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, StatusCode, envelope, legacy, list_of, number, refused, text
from tasks_app.dispatch.reports import NO_COMMAND, NotYoursError, Proof

DEFAULT_RANGES, UNREADABLE_RANGES = 10, 8
"""Ranges that are handed out when nRanges is absent, and when it is no number."""
_COUNT: Final = re.compile("-?[0-9]{1,18}")
VERSIONS: Final = 2
"""The highest version of a report: it is for fine-grained jobs."""
FEW = 5
"""Refused items of which the answer says why."""
ITEMS = "of ranges (version 0), or of files with their ranges (1); both may be mixed, and 2 is for fine-grained jobs"
FENCE, SECRET = "as received with the job, when it came with a secret", "as received with the job"


class AcquireRangesParams(Params):
    job_id = Id(required=False, help_text="or pandaID, as harvester says")
    n_ranges = Number(required=False, help_text="10 when it is absent; at most 10 000 come at once")
    segment_id = Number(required=False, help_text="only ranges of this dataset")
    fence = Number(required=False, help_text=FENCE)
    job_secret = Text(required=False, help_text=SECRET)


class UpdateRangesParams(Params):
    event_ranges = JsonList(help_text=ITEMS)
    version = Number(required=False)
    fence = Number(required=False, help_text=FENCE)
    job_secret = Text(required=False, help_text=SECRET)


class UpdateRangeParams(Params):
    event_range_id = Text()
    event_range_status = Text()
    object_store_id = Text(required=False)
    fence = Number(required=False, help_text=FENCE)
    job_secret = Text(required=False, help_text=SECRET)


class CountRangesParams(Params):
    job_id = Id()
    fence = Number(required=False, help_text=FENCE)
    job_secret = Text(required=False, help_text=SECRET)


class LegacyGetParams(Params):
    pandaID = Id()
    nRanges = Text(
        required=False, help_text="10 when it is absent, 8 when it is no number; at most 10 000 come at once"
    )
    segment_id = Number(required=False, help_text="only ranges of this dataset")


class LegacyCountParams(Params):
    pandaID = Id()


class LegacyUpdateParams(Params):
    eventRanges = JsonList(help_text=ITEMS)
    version = Text(required=False)


class LegacyUpdateOneParams(Params):
    eventRangeID = Text()
    eventStatus = Text()
    objstoreID = Text(required=False)


@call("event/acquire_event_ranges", "POST", Right.PILOT, AcquireRangesParams, hot=True)
def acquire_event_ranges(ask: Ask) -> HttpResponse:
    """Fetch ranges of events for a job: none when it is not at work, or when none is left."""
    return envelope({"StatusCode": 0, "eventRanges": _handed(ask, "job_id", "n_ranges")})


@call("getEventRanges", "POST", Right.PILOT, LegacyGetParams, old=True, hot=True)
def get_event_ranges(ask: Ask) -> HttpResponse:
    """Fetch ranges of events for a job: none when it is not at work, or when none is left."""
    return legacy(eventRanges=_handed(ask, "pandaID", "nRanges"))


def _handed(ask: Ask, job: str, ranges: str) -> list[dict[str, Any]]:
    """Raises BadCallError, PermissionDenied."""
    job_id = number(ask.given, job, 1) or number(ask.given, "pandaID", 1)
    if job_id is None:
        raise BadCallError(f"{job} is missing")
    wanted, segment = _wanted(ask.given, ranges), number(ask.given, "segment_id", 0)
    try:
        return hand_out(job_id, wanted, proof_of(ask.caller, ask.given), segment)
    except NotYoursError as exc:
        raise PermissionDenied("the job is not yours") from exc


def _wanted(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name)
    if value is None or value == "":
        return DEFAULT_RANGES
    if isinstance(value, str) and not _COUNT.fullmatch(value):
        return UNREADABLE_RANGES
    return number(given, name, -(2**63)) or 0


@call("event/get_available_event_range_count", "GET", Right.PILOT, CountRangesParams)
def get_available_event_range_count(ask: Ask) -> HttpResponse:
    """How many ranges of events wait for a job."""
    return envelope(_waiting(ask, ask.given["job_id"]))


@call("checkEventsAvailability", "POST", Right.PILOT, LegacyCountParams, old=True)
def check_events_availability(ask: Ask) -> HttpResponse:
    """How many ranges of events wait for a job: nEventRanges."""
    return legacy(nEventRanges=_waiting(ask, ask.given["pandaID"]))


def _waiting(ask: Ask, job_id: int) -> int:
    """Raises PermissionDenied."""
    try:
        return waiting(job_id, proof_of(ask.caller, ask.given))
    except NotYoursError as exc:
        raise PermissionDenied("the job is not yours") from exc


@call("event/update_event_ranges", "POST", Right.PILOT, UpdateRangesParams, hot=True)
def update_event_ranges(ask: Ask) -> HttpResponse:
    """Report on ranges of events: true, false (refused) or null (ignored) of each, in their order."""
    found = _booked(ask, "event_ranges")
    told = _told(found)
    return envelope({"StatusCode": 0, "Returns": found.answers, "Command": told, "Commands": told}, message=_why(found))


@call("updateEventRanges", "POST", Right.PILOT, LegacyUpdateParams, old=True, hot=True)
def update_event_ranges_legacy(ask: Ask) -> HttpResponse:
    """Report on ranges of events: true, false (refused) or null (ignored) of each, in their order."""
    found = _booked(ask, "eventRanges")
    return legacy(says=_why(found), Returns=found.answers, Command=_told(found))


def _booked(ask: Ask, name: str) -> Account:
    """Raises BadCallError."""
    said, version = list_of(ask.given, name), number(ask.given, "version", 0, VERSIONS) or 0
    return account(said, proof_of(ask.caller, ask.given), fine_grained=version == VERSIONS)


@call("event/update_single_event_range", "POST", Right.PILOT, UpdateRangeParams)
def update_single_event_range(ask: Ask) -> HttpResponse:
    """Report on one range."""
    found = _one(ask, "event_range_id", "event_range_status", "object_store_id")
    if found.answers[0] is False:
        return refused(found.reasons[0])
    return envelope({"Command": _command(found)})


@call("updateEventRange", "POST", Right.PILOT, LegacyUpdateOneParams, old=True)
def update_event_range(ask: Ask) -> HttpResponse:
    """Report on one range."""
    found = _one(ask, "eventRangeID", "eventStatus", "objstoreID")
    if found.answers[0] is False:
        return legacy(StatusCode.FAILED, found.reasons[0])
    return legacy(Command=_command(found))


def _one(ask: Ask, range_id: str, status: str, store: str) -> Account:
    said = {
        "eventRangeID": ask.given[range_id],
        "eventStatus": ask.given[status],
        "objstoreID": ask.given.get(store) or None,
    }
    return account([said], proof_of(ask.caller, ask.given))


def proof_of(caller: Caller, given: Mapping[str, Any]) -> Proof:
    """How the caller shows that jobs are theirs. Raises BadCallError."""
    return Proof(number(given, "fence"), text(given, "job_secret", 100), caller.site, worker=caller.worker)


def _told(found: Account) -> dict[str, str]:
    return {str(job): command for job, command in found.commands.items()}


def _command(found: Account) -> str:
    return next(iter(found.commands.values()), NO_COMMAND)


def _why(found: Account) -> str:
    """Of the first refused items, by their places from 0."""
    return "; ".join(f"item {place}: {found.reasons[place]}" for place in sorted(found.reasons)[:FEW])
