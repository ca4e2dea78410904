"""Translates harvester's report on a worker into our columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jedisite.vocabulary.words import on_one_line
from tasks_app.api.panda.wire import BadCallError, moment, number, text
from tasks_app.dispatch.worker_moves import WorkerNews

_TEXTS = {
    "batchID": 80,
    "queueName": 128,
    "nodeID": 200,
    "jobType": 20,
    "resourceType": 56,
    "nativeStatus": 80,
    "diagMessage": 500,
    "computingElement": 128,
    "submissionHost": 128,
    "harvesterHost": 128,
}
_NUMBERS = ("nCore", "nativeExitCode", "nJobs", "errorCode")
_TIMES = ("submitTime", "startTime", "endTime")
MAX_JOBS = 10_000
"""Jobs of one worker."""


def news_of(said: Mapping[str, Any], site: str) -> WorkerNews:
    """The report on one worker. `site`: the only queue that the caller may report on, "" is any. Raises BadCallError."""
    worker = number(said, "workerID", 1)
    status, queue = on_one_line(text(said, "status", 80)), text(said, "computingSite", 128)
    for name, value in (("workerID", worker), ("status", status), ("computingSite", queue)):
        if not value:
            raise BadCallError(f"{name} is missing")
    if site and queue != site:
        raise BadCallError(f"computingSite: this token is for the queue {site}")
    about: dict[str, Any] = {
        name.lower(): on_one_line(text(said, name, length)) or None for name, length in _TEXTS.items()
    }
    about |= {name.lower(): number(said, name, -(2**31), 2**31 - 1) for name in _NUMBERS}
    about |= {name.lower(): time_of(said, name) for name in _TIMES}
    about["minramcount"] = number(said, "minRamCount")
    return WorkerNews(worker or 0, status, queue, about, _jobs(said))


def time_of(said: Mapping[str, Any], name: str) -> datetime | None:
    """A time as harvester writes it: `datetime/YYYY-mm-dd HH:MM:SS.ffffff`, or without the word; None if it is none."""
    value = said.get(name)
    return moment({name: value.removeprefix("datetime/") if isinstance(value, str) else None}, name)


def _jobs(said: Mapping[str, Any]) -> list[int]:
    jobs = said.get("pandaid_list") or []
    if not isinstance(jobs, list) or len(jobs) > MAX_JOBS:
        raise BadCallError(f"pandaid_list must be a list of up to {MAX_JOBS} numbers")
    return [number({"pandaid_list": job}, "pandaid_list", 1) or 0 for job in jobs]
