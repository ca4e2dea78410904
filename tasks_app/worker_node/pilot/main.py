"""The pilot's loop: ask for a job, run it, ask again."""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tasks_app.worker_node.pilot.errors import Code, Failure
from tasks_app.worker_node.pilot.job import BadJobError, parse_job
from tasks_app.worker_node.pilot.job_report import PARTING_S, UPDATE
from tasks_app.worker_node.pilot.latch import Latch, wait_any
from tasks_app.worker_node.pilot.processes import adopt_orphans
from tasks_app.worker_node.pilot.runner import run_job
from tasks_app.worker_node.pilot.settings import Settings, SettingsError, add_arguments, from_arguments
from tasks_app.worker_node.pilot.site_client import Client, InterruptedCallError, RefusedError, UnreachableError

log = logging.getLogger(__name__)

ACQUIRE = "/api/v1/pilot/acquire_jobs"
LOCK_NAME = ".lock"
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 5.0

ENDED_WELL = 0
SERVER_SAYS_NO = 1
BAD_SETTINGS = 2
SERVER_AWAY = 3


def main(argv: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="pilot", description="Fetches jobs of one queue and runs them.")
    add_arguments(parser)
    try:
        settings = from_arguments(parser.parse_args(argv))
    except SettingsError as exc:
        parser.error(str(exc))
    return run(settings)


def run(settings: Settings) -> int:
    """Work until told to stop: SIGTERM, the number of jobs, the idle time. Returns the exit code.

    0: ended as it should, 1: the server refuses this pilot, 3: the server stayed away.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"%(asctime)s pilot={os.getpid()} %(message)s")
    settings.work.mkdir(parents=True, exist_ok=True)
    adopt_orphans()
    if settings.unwalled:
        log.warning("payloads.unwalled jobs=administrators reason=%s", settings.unwalled)
    terminated = Latch()
    # Shared: pilots may use one folder. Who wants to remove it asks for the lock and sees that we live.
    with _signals(terminated), open(settings.work / LOCK_NAME, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return _loop(settings, Client(settings.server, settings.token_now), terminated)


def _loop(settings: Settings, client: Client, terminated: Latch) -> int:
    done = 0
    idle_since = time.monotonic()
    pause_s = FIRST_PAUSE_S
    while not terminated.is_set:
        left_s = settings.patience_s
        if settings.idle_exit_s is not None:
            left_s = min(left_s, settings.idle_exit_s - (time.monotonic() - idle_since))
        try:
            jobs = _acquire(settings, client, max(0.0, left_s), terminated)
        except RefusedError as exc:
            log.error("pilot.refused trouble=%s", exc)
            return SERVER_SAYS_NO
        except UnreachableError as exc:
            log.error("pilot.server_away trouble=%s", exc)
            return SERVER_AWAY
        except InterruptedCallError:
            break
        for raw in jobs:
            _one_job(raw, settings, client, terminated)
            done += 1
        if settings.max_jobs and done >= settings.max_jobs:
            break
        if jobs:
            idle_since, pause_s = time.monotonic(), FIRST_PAUSE_S
            continue
        if settings.idle_exit_s is not None and time.monotonic() - idle_since >= settings.idle_exit_s:
            break
        wait_any((terminated,), pause_s * random.uniform(0.8, 1.0))
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
    log.info("pilot.ended jobs=%d", done)
    return ENDED_WELL


def _acquire(settings: Settings, client: Client, patience_s: float, terminated: Latch) -> list[dict[str, Any]]:
    """Ask for one job; an empty list when there is none. Raises what `Client.post` raises."""
    body: dict[str, object] = {
        "site_name": settings.queue,
        "node": settings.node,
        "disk_space": shutil.disk_usage(settings.work).free // 1_000_000,
        "worker_id": settings.worker_id,
        "n_jobs": 1,
        "with_secret": True,
    }
    if settings.label:
        body["prod_source_label"] = settings.label
    if settings.unwalled:
        body["administrators_only"] = True
    if settings.memory_mb:
        body["memory"] = settings.memory_mb
    answer = client.post(ACQUIRE, body, patience_s=patience_s, until=(terminated,))
    jobs = answer.data.get("jobs") if answer.success and isinstance(answer.data, dict) else None
    return [raw for raw in jobs if isinstance(raw, dict)] if isinstance(jobs, list) else []


def _one_job(raw: dict[str, Any], settings: Settings, client: Client, terminated: Latch) -> None:
    try:
        job = parse_job(raw)
    except BadJobError as exc:
        failure = Failure(Code.SETUP_FAILED, f"The pilot cannot run this job: {exc}"[:500])
        _refuse(raw, settings, client, failure, terminated)
    else:
        run_job(job, settings, client, terminated)


def _refuse(raw: dict[str, Any], settings: Settings, client: Client, failure: Failure, terminated: Latch) -> None:
    """Report a job that cannot even be begun."""
    log.error("job.senseless job=%s diag=%s", raw.get("PandaID"), failure.diag)
    body: dict[str, object] = {
        "job_id": raw.get("PandaID"),
        "job_status": "failed",
        "attempt_nr": raw.get("attemptNr"),
        "fence": raw.get("fence"),
        "job_secret": raw.get("jobSecret"),
        "site_name": settings.queue,
        "node": settings.node,
        "pilot_error_code": int(failure.code),
        "pilot_error_diag": failure.diag,
    }
    patience_s = PARTING_S if terminated.is_set else settings.patience_s
    try:
        client.post(UPDATE, body, patience_s=patience_s, until=() if terminated.is_set else (terminated,))
    except (RefusedError, UnreachableError, InterruptedCallError) as exc:
        log.warning("report.lost job=%s trouble=%s", raw.get("PandaID"), exc)


@contextmanager
def _signals(terminated: Latch) -> Iterator[None]:
    """SIGTERM and SIGINT ask for an end; the job at hand is reported."""

    def ask(_number: int, _frame: FrameType | None) -> None:
        terminated.set()

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a pilot works in the main thread only: the kernel ties its payload to that thread")
    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
