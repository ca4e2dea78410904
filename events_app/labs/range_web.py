"""bench events, by HTTP: consumers fetch 100 ranges in a call and report them in another, as PanDA's pilots do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final

from brokerage_app.models import StorageEndpoint
from jedisite.identity.callers import issue_token
from tasks_app.labs.bench import clients

CLIENTS: Final = 8
AT_A_TIME: Final = 64
"""Calls of one kind before those of the other: each hand-out has been answered before its report is sent."""
Hundred = tuple[int, list[str]]
"""A job, and the ids of the ranges that it gets by one call."""


STORE: Final = 1
"""The number of the storage where outputs of ranges lie."""


def pilot_token() -> str:
    """The token of a pilot; its storage is there then."""
    StorageEndpoint.objects.get_or_create(number=STORE, defaults={"name": "BENCH_EVENTS", "path": "/events"})
    return issue_token("bench events", "pilot", lifetime=timedelta(hours=1))


def rate(port: int, token: str, hundreds: Iterator[Hundred], a_call: int, seconds: float) -> float:
    """Ranges a second; each range of a call counts, whether it is fetched or reported. Raises RuntimeError."""
    word = {b'"eventRangeID"', b"true"}

    def is_good(answer: bytes) -> bool:
        return any(answer.count(one) == a_call for one in word)

    seen = clients.load(port, _requests(token, hundreds, a_call), is_good, CLIENTS, seconds, keep=False)
    if seen.other:
        raise RuntimeError(f"a call on ranges was answered with {seen.example!r}")
    return seen.rate * a_call


def _requests(token: str, hundreds: Iterator[Hundred], a_call: int) -> Iterator[bytes]:
    while some := list(islice(hundreds, AT_A_TIME)):
        for job, _ in some:
            asked = {"pandaID": job, "nRanges": a_call}
            yield clients.form("/server/panda/getEventRanges", token, asked, keep=False)
        for _, ids in some:
            yield clients.form("/server/panda/updateEventRanges", token, _report(ids), keep=False)


def _report(ids: Sequence[str]) -> dict[str, str]:
    said = [{"eventRangeID": one, "eventStatus": "finished", "objstoreID": STORE} for one in ids]
    return {"version": "0", "eventRanges": json.dumps(said)}
