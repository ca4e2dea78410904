"""What the server is told of a job: states in their order, heartbeats with measures, the final report."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from tasks_app.worker_node.pilot.errors import DIAG_LIMIT, Code, Failure, JobFailedError
from tasks_app.worker_node.pilot.job import Job
from tasks_app.worker_node.pilot.latch import Latch
from tasks_app.worker_node.pilot.plain import plain_text
from tasks_app.worker_node.pilot.settings import Settings
from tasks_app.worker_node.pilot.site_client import (
    TOO_LARGE,
    Body,
    Client,
    InterruptedCallError,
    RefusedError,
    UnreachableError,
)
from tasks_app.worker_node.pilot.stageout import PayloadReport, Stored

log = logging.getLogger(__name__)

UPDATE = "/api/v1/pilot/update_job"
VERSION = "jedisite-pilot 1"
PARTING_S = 5.0
HURRY = "hurry"
"""File in a pilot's folder that asks for a heartbeat now: who started the pilot has seen that its job is to be killed."""
CONTENT = frozenset({400, TOO_LARGE, 422})
"""Answers that mean what stands in a report."""
PILOT_LOG_LIMIT = 1024

State = Literal["starting", "running", "finished", "failed"]


@dataclass(slots=True)
class Progress:
    """What is known of the job so far. Whole values are put in, so that the heartbeat never reads half a change."""

    start: float | None = None
    cpu_s: float = 0.0
    max_rss_kb: int = 0
    avg_rss_kb: int = 0
    exit_code: int | None = None
    metrics: Mapping[str, object] = field(default_factory=dict)


def update_body(job: Job, settings: Settings, state: State, progress: Progress) -> dict[str, object]:
    """The fields that every update carries."""
    body: dict[str, object] = {
        "job_id": job.id,
        "job_status": state,
        "attempt_nr": job.attempt,
        "fence": job.fence,
        "job_secret": job.secret,
        "site_name": settings.queue,
        "node": settings.node,
        "pilot_id": VERSION,
        "batch_id": str(settings.worker_id or ""),
        "core_count": job.cores,
    }
    if progress.start is not None:
        body |= {
            "start_time": utc_text(progress.start),
            "cpu_consumption_time": round(progress.cpu_s),
            "max_rss": progress.max_rss_kb,
            "avg_rss": progress.avg_rss_kb,
        }
    return body


def final_body(
    job: Job,
    settings: Settings,
    progress: Progress,
    failure: Failure | None,
    stored: Sequence[Stored],
    payload: PayloadReport,
    *,
    end: float,
    pilot_log: str,
) -> dict[str, object]:
    """The final report. A failed job still names its log, if that was stored."""
    body = update_body(job, settings, "failed" if failure else "finished", progress)
    body["end_time"] = utc_text(end)
    body["job_metrics"] = " ".join(f"{key}={value}" for key, value in progress.metrics.items())
    body["job_output_report"] = json.dumps(output_report(stored, payload))
    if payload.events is not None:
        body["n_events"] = payload.events
    if payload.results is not None and not failure:
        body["meta_data"] = {"results": payload.results}
    if progress.exit_code is not None:
        body["trans_exit_code"] = progress.exit_code
    if failure:
        body |= {
            "pilot_error_code": int(failure.code),
            "pilot_error_diag": failure.diag,
            "exe_error_code": failure.exit_code,
            "exe_error_diag": failure.exe_diag,
            "pilot_log": pilot_log[-PILOT_LOG_LIMIT:],
        }
        if failure.corrupted and job.merges_ranges:
            body["corrupted_files"] = ",".join(failure.corrupted)
    if payload.trouble:
        said = [failure.diag] if failure else []
        body["pilot_error_diag"] = "; ".join([*said, payload.trouble])[:DIAG_LIMIT]
    return {name: plain_text(value) if isinstance(value, str) else value for name, value in body.items()}


def report_without_extras(body: Mapping[str, object], said: str) -> dict[str, object]:
    """The final report that the server did not take for what stands in it, with no more than what its books need."""
    extras = ("meta_data", "job_metrics", "pilot_log", "n_events")
    outputs: dict[str, dict[str, object]] = json.loads(str(body["job_output_report"]))
    needed = {lfn: {key: value for key, value in one.items() if key != "nevents"} for lfn, one in outputs.items()}
    diag = f"{body.get('pilot_error_diag', '')} The site refused the first report of the job: {said}".strip()
    return {name: value for name, value in body.items() if name not in extras} | {
        "job_output_report": json.dumps(needed),
        "pilot_error_diag": diag[:DIAG_LIMIT],
    }


def report_without_bulk(body: Mapping[str, object], said: str, why: str = "is too large") -> dict[str, object]:
    """The final report of a job whose own report the server does not take: the job has failed, and for that."""
    bulky = ("job_output_report", "meta_data", "job_metrics", "pilot_log")
    outputs = len(json.loads(str(body["job_output_report"])))
    return {name: value for name, value in body.items() if name not in bulky} | {
        "job_status": "failed",
        "pilot_error_code": int(Code.PILOT_PROBLEM),
        "pilot_error_diag": f"The report of the job (files: {outputs}) {why}: {said}"[:DIAG_LIMIT],
    }


def output_report(stored: Sequence[Stored], payload: PayloadReport) -> dict[str, dict[str, object]]:
    """`{lfn: {guid, fsize, adler32, surl, nevents}}` of the files that were stored; nevents is null when not known."""
    events = dict(payload.file_events)
    return {
        file.lfn: {
            "guid": file.guid,
            "fsize": file.copied.size,
            "adler32": file.copied.hex,
            "surl": file.place.url,
            "nevents": events.get(file.lfn),
        }
        for file in stored
    }


def utc_text(moment: float) -> str:
    """PanDA's way of writing a time; many of our jobs take less than a second."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def parting_s(terminated: Latch) -> float:
    """How long a pilot that was told to end may still try to reach the server."""
    return max(0.0, PARTING_S - terminated.age_s())


class Reporter:
    """Tells the server in a thread of its own, so that a server that is away does not hold up the payload.

    `killed` is set when the server wants the job to end; `orders` then says why. `softly_killed`: it is to begin no more ranges.
    """

    def __init__(self, client: Client, job: Job, settings: Settings, terminated: Latch) -> None:
        self._client, self._job, self._settings = client, job, settings
        self._terminated = terminated
        self.progress = Progress()
        self.killed = Latch()
        self.softly_killed = Latch()
        self.disowned = False
        self.content_refused = False
        self.given_up = False
        """The server took no report with outputs in it, so the job was reported failed."""
        self.orders: Failure | None = None
        self._closing = Latch()
        self._changed = threading.Condition()
        self._pending: deque[State] = deque(["starting"])
        self._state: State = "starting"
        self._hurried = False
        self._last_contact = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def enter(self, state: State) -> None:
        """The job has a new state; it is told at once."""
        with self._changed:
            self._state = state
            self._pending.append(state)
            self._changed.notify()

    def hurry(self) -> None:
        """Send a heartbeat at once."""
        with self._changed:
            self._hurried = True
            self._changed.notify()

    def confirm(self) -> None:
        """Before outputs are stored: ask whether the job is still ours, if the server has not been heard for long.

        Raises JobFailedError when it stays away, InterruptedCallError.
        """
        if time.monotonic() - self._last_contact < 2 * self._settings.heartbeat_s:
            return
        latches = (self._terminated, self.killed)
        try:
            self._tell(partial(self._body, self._state), self._settings.patience_s, latches)
        except UnreachableError as exc:
            raise JobFailedError(Code.SERVER_UNREACHABLE, f"The server did not answer about the job: {exc}") from exc

    def stop(self) -> None:
        """End the heartbeats."""
        self._closing.set()
        with self._changed:
            self._changed.notify()
        # A call that is under way ends by itself, but a pilot that is told to end cannot wait for that.
        while self._thread.is_alive() and self._terminated.age_s() < PARTING_S / 2:
            self._thread.join(0.1)

    def final(self, body: Mapping[str, object]) -> bool:
        """Tell how the job ended, until the server has heard it or our patience is over. True when it has.

        States that it has not heard yet are told before. Call `stop` first.
        """
        bodies = [body]
        if body["job_status"] == "finished":
            bodies[:0] = [self._body(state) for state in self._pending]
        try:
            return all(self._tell_final(one) for one in bodies)
        except UnreachableError as exc:
            log.error("report.lost job=%d trouble=%s", self._job.id, exc)
            return False

    def close(self) -> None:
        """Free the latches; the thread must have ended, or they are left to it."""
        if not self._thread.is_alive():
            for latch in (self.killed, self.softly_killed, self._closing):
                latch.close()

    def _run(self) -> None:
        while not self._closing.is_set and not self.disowned:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._pending or self._hurried or self._closing.is_set, self._settings.heartbeat_s
                )
                if self._closing.is_set:
                    return
                self._hurried = False
                told = bool(self._pending)
                state = self._pending[0] if told else self._state
            try:
                self._tell(partial(self._body, state), self._settings.patience_s, (self._closing,))
            except UnreachableError as exc:
                log.error("heartbeat.lost job=%d trouble=%s", self._job.id, exc)
                continue
            except InterruptedCallError:
                return
            if told:
                self._pending.popleft()

    def _tell_final(self, body: Mapping[str, object]) -> bool:
        if not self._terminated.is_set:
            with contextlib.suppress(InterruptedCallError):
                return self._tell(body, self._settings.patience_s, (self._terminated,))
        return self._tell(body, parting_s(self._terminated), ())

    def _tell(self, body: Body, patience_s: float, until: Sequence[Latch]) -> bool:
        """One update; whatever order comes back is taken. False when the server refused it."""
        try:
            answer = self._client.post(UPDATE, body, patience_s=patience_s, until=until)
        except RefusedError as exc:
            if exc.status in CONTENT and not callable(body) and "job_output_report" in body:
                return self._tell_less(body, str(exc), patience_s, until, too_large=exc.status == TOO_LARGE)
            # 403: the job is no longer ours. Anything else that is final, such as a token that ran out, means the same:
            # nobody would take the result.
            log.warning("report.refused job=%d trouble=%s", self._job.id, exc)
            self.disowned = True
            self._kill(f"The server no longer accepts reports on this job: {exc}")
            return False
        self._last_contact = time.monotonic()
        self.obey(answer.command)
        if not answer.success and not callable(body) and "job_output_report" in body:
            return self._tell_less(body, answer.message, patience_s, until)
        return answer.success

    def _tell_less(
        self,
        body: Mapping[str, object],
        said: str,
        patience_s: float,
        until: Sequence[Latch],
        *,
        too_large: bool = False,
    ) -> bool:
        """The server does not take a final report for its content: first without what it can do without, then failed."""
        log.error("report.content_refused job=%d trouble=%s", self._job.id, said[:DIAG_LIMIT])
        if too_large or self.content_refused:
            self.given_up = True
            why = "is too large" if too_large else "was refused"
            return self._tell(report_without_bulk(body, said, why), patience_s, until)
        self.content_refused = True
        return self._tell(report_without_extras(body, said), patience_s, until)

    def obey(self, command: str) -> None:
        """What the server wants done with the job, in its words."""
        words = command.split(",")
        if "tobekilled" in words:
            self._kill("The server asked for the job to be killed")
        if "softkill" in words:
            self.softly_killed.set()

    def _kill(self, diag: str) -> None:
        if self.orders is None:
            log.info("job.killed job=%d", self._job.id)
            self.orders = Failure(Code.KILLED_BY_SERVER, diag[:500])
            self.killed.set()

    def _body(self, state: State) -> dict[str, object]:
        return update_body(self._job, self._settings, state, self.progress)
