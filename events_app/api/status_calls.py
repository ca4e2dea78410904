"""What people and their programs ask of ranges: the states of those that jobs have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from django.http import HttpResponse

from events_app.dispatch.range_statuses import TooManyRangesError, states_of
from jedisite.identity.callers import Right
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.api.panda.call_params import JsonList, Listed, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, envelope, number

MOST_JOBS: Final = 100


class RangeStatusesParams(Params):
    job_task_ids = Listed(
        child=Text(max_length=100 * MOST_JOBS),
        help_text="objects with task_id and job_id (or panda_id) as texts, or one JSON list of them; at most 100",
    )


class EventsStatusParams(Params):
    ids = JsonList(help_text="of objects with task_id and panda_id, at most 100")


@call("event/get_event_range_statuses", "GET", Right.READ, RangeStatusesParams)
def get_event_range_statuses(ask: Ask) -> HttpResponse:
    """States of the ranges that jobs have: {job: {range: {status, error, dialog}}}."""
    read: list[Any] = []
    for said in ask.given["job_task_ids"]:
        one = _plain(said)
        read += one if isinstance(one, list) else [one]
    return envelope(_states(read, "job_task_ids"))


@call("get_events_status", "POST", Right.READ, EventsStatusParams, old=True)
def get_events_status(ask: Ask) -> HttpResponse:
    """States of the ranges that jobs have: {job: {range: {status, error, dialog}}}, without a StatusCode."""
    return HttpResponse(json.dumps(_states(ask.given["ids"], "ids")), content_type="application/json")


def _plain(said: str) -> Any:
    """JSON, or a Python dict as PanDA's client writes it. Raises BadCallError."""
    try:
        return strict_json(said.replace("'", '"').encode())
    except NotPlainJSONError as exc:
        raise BadCallError(f"job_task_ids: {said[:60]!r} is not a JSON object with task_id and job_id") from exc


def _states(read: Iterable[Any], name: str) -> dict[str, dict[str, Any]]:
    """Raises BadCallError."""
    pairs = []
    for one in read:
        if not isinstance(one, dict):
            raise BadCallError(f"{name}: {one!r:.60} is not an object with task_id and job_id")
        task_id, job_id = number(one, "task_id", 1), number(one, "job_id", 1) or number(one, "panda_id", 1)
        if task_id is None or job_id is None:
            raise BadCallError(f"{name}: {one!r:.60} lacks task_id, or job_id (panda_id)")
        pairs.append((task_id, job_id))
    if len(pairs) > MOST_JOBS:
        raise BadCallError(f"{name} has {len(pairs)} jobs; at most {MOST_JOBS} are answered at once")
    try:
        return states_of(pairs)
    except TooManyRangesError as exc:
        raise BadCallError(f"{name}: {exc}") from exc
