"""The calls that bench http measures: for each the tables that it needs, the requests, and the same work without HTTP."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from psycopg.types.json import Json
from psycopg.types.numeric import Int8

from jedisite.database.sql import hot_cursor
from jedisite.identity.callers import caller_of_token, issue_token
from tasks_app.counts import line_order
from tasks_app.dispatch import handing_out, reports
from tasks_app.labs.bench import clients, dispatching, reporting, scene
from tasks_app.labs.bench.crowd import Step
from tasks_app.labs.bench.database import settle
from tasks_app.lifecycle.job_reports import FINAL
from tasks_app.models import CatalogueDataset, Task
from tasks_app.submission import submitting

CLIENTS = 8
SITES = scene.site_names(20)
LISTED = 50
"""Tasks of a page of the list."""
BULK = 100
"""Heartbeats of one call of harvester."""
PANDA_ACQUIRE, PANDA_UPDATE, PANDA_HEARTBEAT = 252.0, 286.0, 475.0
"""Calls a second of today's PanDA server on such a machine, 4 processes and 8 clients, defects of its connection mended."""

Made = Callable[[int], Step]
"""What each of the processes that do it directly does, by its number."""


Requests = Callable[[range, bool], Iterator[bytes]]
"""Requests about jobs, for connections that are kept or not."""
Bodies = Callable[[range], Iterator[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API.

    `ready(n)` fills the tables for one case and returns n jobs; `direct` does the work on them without HTTP, `requests`
    by it; `things` is how many heartbeats, say, one call carries; `panda` is today's server's rate of it. `like` names
    the call whose work without HTTP is the same, and then there is no `direct`.
    """

    name: str
    ready: Callable[[int], range]
    requests: Requests
    is_good: Callable[[bytes], bool]
    direct: Callable[[range], Made] | None = None
    like: str = ""
    things: int = 1
    panda: float | None = None


def pilot_calls(token: str) -> list[Call]:
    def said(path: str, bodies: Bodies, write: Callable[..., bytes] = clients.post) -> Requests:
        # Made before the time begins, so that the clients have little to do in it.
        return lambda jobs, keep: iter([write(path, token, body, keep=keep) for body in bodies(jobs)])

    update = "/api/v1/pilot/update_job"
    return [
        Call(
            "acquire_jobs",
            _activated,
            said("/api/v1/pilot/acquire_jobs", _asking),
            _has_job,
            _claiming,
            panda=PANDA_ACQUIRE,
        ),
        Call("heartbeat", _running, said(update, _heartbeats), _is_booked, _beating, panda=PANDA_HEARTBEAT),
        Call("final_update", _running, said(update, _final_reports), _is_booked, _ending, panda=PANDA_UPDATE),
        Call(
            "legacy_getJob",
            _activated,
            said("/server/panda/getJob", _asking_as_panda, clients.form),
            _has_job,
            like="acquire_jobs",
            panda=PANDA_ACQUIRE,
        ),
        Call(
            "legacy_updateJob",
            _running_without_secret,
            said("/server/panda/updateJob", _heartbeats_as_panda, clients.form),
            lambda answer: b'"StatusCode": 0, "command": "NULL"' in answer,
            like="heartbeat",
            panda=PANDA_HEARTBEAT,
        ),
        Call(
            f"heartbeats_bulk_{BULK}",
            _running,
            _again(said("/api/v1/pilot/update_jobs_bulk", _bulks)),
            lambda answer: answer.count(b'"command": "NULL"') == 2 * BULK,
            like="heartbeat",
            things=BULK,
        ),
    ]


def _again(requests: Requests) -> Requests:
    return lambda jobs, keep: itertools.cycle(requests(jobs, keep))


def user_calls() -> list[Call]:
    user = User.objects.create_user(scene.ME)
    token = issue_token(scene.ME, "user", user=user, lifetime=timedelta(hours=1))
    CatalogueDataset.objects.create(name=scene.INPUT, scope="bench")
    for _ in range(2 * LISTED):
        _submitting(token)()
    submitted = {"task_parameters": scene.parameters(10)}
    listing = f"/api/v1/task/get_tasks_detailed_info_since?n_tasks={LISTED}"
    return [
        Call(
            "submit",
            _nothing,
            lambda _, keep: itertools.repeat(clients.post("/api/v1/task/submit", token, submitted, keep=keep)),
            lambda answer: b'"success": true' in answer,
            lambda _: lambda _: _submitting(token),
        ),
        Call(
            "task_list",
            _nothing,
            lambda _, keep: itertools.repeat(clients.head("GET", listing, token, keep=keep)),
            lambda answer: answer.count(b'"jediTaskID"') == LISTED,
            lambda _: lambda _: _listing(),
        ),
    ]


def _nothing(number: int) -> range:
    return range(0)


def _activated(number: int) -> range:
    return dispatching.fresh(number, SITES)


def _running(number: int) -> range:
    return reporting.running(number, SITES)


def _running_without_secret(number: int) -> range:
    """Running jobs that were handed out without a secret, as PanDA's own pilots get them."""
    jobs = _running(number)
    with hot_cursor() as cursor:
        cursor.execute("UPDATE jobs SET secret_hash = NULL")
    settle("jobs")
    return jobs


def _asking_as_panda(jobs: range) -> Iterator[dict[str, Any]]:
    for site in itertools.islice(itertools.cycle(SITES), len(jobs)):
        yield {
            "siteName": site,
            "computingElement": site,
            "prodSourceLabel": "user",
            "diskSpace": 10_000,
            "workingGroup": "",
            "cpu": 2596.12,
            "mem": 24_105.56,
            "node": "node001.bench",
            "allowOtherCountry": False,
        }


def _heartbeats_as_panda(jobs: range) -> Iterator[dict[str, Any]]:
    for job_id in jobs:
        yield {
            "jobId": job_id,
            "state": "running",
            "timestamp": "2026-11-20T12:24:56+00:00",
            "siteName": SITES[0],
            "node": "node001.bench",
            "attemptNr": 1,
            "schedulerID": "unknown",
            "pilotID": "unknown|PR|3.7.0.36",
            "startTime": 1795177496.64,
            "coreCount": 1,
            "cpuConsumptionUnit": "s+AMD EPYC 1024 KB 2-Core Processor+AVX2",
            "cpuConsumptionTime": 1234,
            "maxRSS": 900_000,
            "avgRSS": 800_000,
        }


def _asking(jobs: range) -> Iterator[dict[str, Any]]:
    return itertools.islice(map(dispatching.question, itertools.cycle(SITES)), len(jobs))


def _heartbeats(jobs: range) -> Iterator[dict[str, Any]]:
    for job_id in jobs:
        yield {
            "job_id": job_id,
            "job_status": "running",
            "fence": 1,
            "job_secret": scene.SECRET,
            "attempt_nr": 1,
            "core_count": 1,
            "cpu_consumption_time": 1234,
            "max_rss": 900_000,
            "avg_rss": 800_000,
            "node": "node001.bench",
        }


def _bulks(jobs: range) -> Iterator[dict[str, Any]]:
    said = list(_heartbeats(jobs))
    for first in range(0, len(said) - BULK + 1, BULK):
        yield {"harvester_id": "bench", "job_list": json.dumps(said[first : first + BULK])}


def _final_reports(jobs: range) -> Iterator[dict[str, Any]]:
    outputs = json.dumps(reporting.OUTPUTS)
    for body in _heartbeats(jobs):
        yield {**body, "job_status": "finished", "trans_exit_code": "0", "job_output_report": outputs}


def _claiming(jobs: range) -> Made:
    """The statement of a hand-out, sites in turn."""
    handing_out._hints.clear()
    line_order.forget()

    def make(index: int) -> Step:
        names = itertools.cycle(SITES[index:] + SITES[:index])

        def step() -> int:
            request = handing_out.Request(next(names), "user", 1, "node001.bench", "12345")
            return len(handing_out._claim(request, secrets.token_urlsafe(32), line_order.line_order()))

        return step

    return make


_MEASURES = {"cpu_time_s": 1234, "max_rss_kb": 900_000, "avg_rss_kb": 800_000, "cores": 1, "node": "node001.bench"}


def _said(status: str) -> dict[str, Any]:
    """Values of a report's statement, without the job."""
    said = reports.Report(1, status, reporting.PROOF, _MEASURES, {"trans_exit_code": "0"})
    return {**reports.values_of(said), "outputs": Json(reporting.OUTPUTS)}


def _executing(statement: str, values: dict[str, Any], jobs: Iterator[int]) -> Step:
    def step() -> int:
        job_id = next(jobs, None)
        if job_id is None:
            return 0
        with hot_cursor() as cursor:
            return len(cursor.execute(statement, {**values, "job": Int8(job_id)}).fetchall())

    return step


def _beating(jobs: range) -> Made:
    statement = reports._with(reports._HEARTBEAT, reports._mine(reporting.PROOF), tuple(_MEASURES))
    return lambda index: _executing(statement, _said("running"), itertools.cycle(jobs[index::CLIENTS]))


def _ending(jobs: range) -> Made:
    statement = reports._with(FINAL, reports._mine(reporting.PROOF), tuple(_MEASURES), ("trans_exit_code",))
    return lambda index: _executing(statement, _said("finished"), iter(jobs[index::CLIENTS]))


def _submitting(token: str) -> Step:
    caller = caller_of_token(token)
    assert caller

    def step() -> int:
        submitting.submit(submitting.check(scene.parameters(10), caller), by=scene.ME)
        return 1

    return step


def _listing() -> Step:
    statement, values = Task.objects.filter(user=scene.ME).order_by("-id")[:LISTED].query.sql_with_params()

    def step() -> int:
        with hot_cursor() as cursor:
            return len(cursor.execute(statement, values).fetchall())

    return step


def _has_job(answer: bytes) -> bool:
    return b'"PandaID"' in answer


def _is_booked(answer: bytes) -> bool:
    return b'"success": true' in answer and b'"NULL"' in answer
