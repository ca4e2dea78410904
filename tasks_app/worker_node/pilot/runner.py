"""One job from beginning to end: inputs, payload under watch, outputs, report, and the slot is clean again."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks_app.worker_node.pilot import payload as payloads
from tasks_app.worker_node.pilot import safe_names
from tasks_app.worker_node.pilot.errors import Code, Failure, JobFailedError
from tasks_app.worker_node.pilot.gauge import FIRST_LOOK_S, LOOK_EVERY_S, Gauge, free_mb, holes_kb
from tasks_app.worker_node.pilot.job import BadJobError, Job, Output
from tasks_app.worker_node.pilot.job_limits import NO_GRACE, Limits, memory_limit_mb, verdict, with_disk
from tasks_app.worker_node.pilot.job_report import HURRY, Reporter, final_body, parting_s
from tasks_app.worker_node.pilot.latch import Latch
from tasks_app.worker_node.pilot.lists_of_inputs import lists_in, write_lists
from tasks_app.worker_node.pilot.range_calls import RangeCalls
from tasks_app.worker_node.pilot.range_channel import VARIABLE, address
from tasks_app.worker_node.pilot.range_files import RangeFiles
from tasks_app.worker_node.pilot.range_service import RangeService, RangeStore, zip_every_s
from tasks_app.worker_node.pilot.removing import remove_folder
from tasks_app.worker_node.pilot.settings import Settings
from tasks_app.worker_node.pilot.site_client import Client, InterruptedCallError, RefusedError, UnreachableError
from tasks_app.worker_node.pilot.stagein import Readable, reads_from, stage_in, stage_in_zips
from tasks_app.worker_node.pilot.stageout import (
    PayloadReport,
    Stored,
    make_log,
    read_report,
    stage_out,
    take_back,
    written,
)
from tasks_app.worker_node.pilot.storage import (
    base_folder,
    base_folders,
    default_endpoint,
    endpoint_of_ranges,
    holding_folders,
    number_of,
)
from tasks_app.worker_node.pilot.walls import limit

log = logging.getLogger(__name__)

STORAGE_MAP = "/cache/ddmendpoints.json"
GRACE_S = 2.0


def run_job(job: Job, settings: Settings, client: Client, terminated: Latch) -> bool:
    """Work on a job until the server knows its outcome. True when it was reported finished."""
    folder = Path(tempfile.mkdtemp(prefix=f"{job.id}-", dir=settings.work))
    try:
        with _pilot_log(folder / "pilot.log"):
            return _Run(job, settings, client, terminated, folder).run()
    finally:
        if not settings.keep:
            remove_folder(folder)


class _Run:
    def __init__(self, job: Job, settings: Settings, client: Client, terminated: Latch, folder: Path) -> None:
        self.job, self.settings, self.client, self.folder = job, settings, client, folder
        self.terminated = terminated
        self.reporter = Reporter(client, job, settings, terminated)
        self.stored: list[Stored] = []
        self.payload_report = PayloadReport()
        self.metrics: dict[str, object] = {}
        self._bases: dict[str, Path] = {}
        self._map: dict[str, Any] | None = None
        self.ranges: RangeService | None = None

    def run(self) -> bool:
        log.info("job.got job=%d task=%d attempt=%d", self.job.id, self.job.task_id, self.job.attempt)
        failure = self._guarded_work()
        if failure:
            log.info("job.failed job=%d code=%d diag=%s", self.job.id, failure.code, failure.diag)
            self._clean_up_after_failure()
        self.reporter.stop()
        if self.reporter.disowned:
            self._close()
            return False
        self.reporter.progress.metrics = self.metrics
        body = final_body(
            self.job,
            self.settings,
            self.reporter.progress,
            failure,
            self.stored,
            self.payload_report,
            end=time.time(),
            pilot_log=payloads.tail(self.folder / "pilot.log", 4096) if failure else "",
        )
        heard = self.reporter.final(body)
        if not failure and self.reporter.orders:
            # The job was given up before, and another may make these files: what lies there is nobody's.
            failure = self.reporter.orders
            take_back([file for file in self.stored if not self.job.log or file.lfn != self.job.log.lfn])
        if self.reporter.given_up:
            take_back(self.stored)
        self._close()
        log.info("job.reported job=%d status=%s heard=%s", self.job.id, body["job_status"], heard)
        return heard and not failure and not self.reporter.given_up

    def check(self) -> None:
        """Raises JobFailedError when the job must not go on."""
        with contextlib.suppress(OSError):  # there is none, as a rule
            (self.settings.work / HURRY).unlink()
            self.reporter.hurry()
        if self.reporter.orders:
            raise JobFailedError(self.reporter.orders.code, self.reporter.orders.diag)
        if self.terminated.is_set:
            raise JobFailedError(Code.SIGTERM, "The pilot was told to end (SIGTERM) before the job was done")
        if self.ranges and self.ranges.trouble:
            raise JobFailedError(self.ranges.trouble.code, self.ranges.trouble.diag)

    def _close(self) -> None:
        if self.ranges:
            self.ranges.abandon()  # as a rule it has ended before
        if self.ranges is None or self.ranges.close():
            self.reporter.close()

    def _guarded_work(self) -> Failure | None:
        try:
            self._work()
        except JobFailedError as exc:
            return exc.failure
        except InterruptedCallError:
            try:
                self.check()
            except JobFailedError as exc:
                return exc.failure
            return Failure(Code.PILOT_PROBLEM, "A call to the server was interrupted for an unknown reason")
        except Exception as exc:
            log.exception("job.pilot_problem")
            return Failure(Code.PILOT_PROBLEM, f"The pilot itself failed: {type(exc).__name__}: {exc}"[:500])
        return None

    def _work(self) -> None:
        with self._timed("stagein_s"):
            until = (self.terminated, self.reporter.killed)
            patience_s = self.settings.patience_s
            inputs = {file.lfn for file in self.job.inputs}
            # What runs comes before the inputs, and from the site: files of other people have names of their choice.
            name = payloads.fetch_transform(
                self.job.transformation, self.folder, self.client, inputs=inputs, patience_s=patience_s, until=until
            )
            argv = payloads.command_line(name, self.job.parameters)
            served = (self.folder / name).exists()
            if trouble := safe_names.clash(self.job, name if served else "", safe_names.sandbox_of(argv)):
                raise JobFailedError(Code.STAGE_IN_FAILED, trouble)
            payloads.fetch_sandbox(argv, self.folder, self.client, patience_s=patience_s, until=until)
            self._write_lists()
            readable = Readable(self.settings.hidden, self._storages)
            bring = stage_in_zips if self.job.merges_ranges else stage_in
            bring(self.job.inputs, self.folder, self.check, readable)
            (self.folder / name).chmod(0o755)
            self.ranges = self._open_ranges(readable) if self.job.takes_ranges else None
        self.check()
        with self._timed("payload_s"):
            try:
                self._run_payload(argv, served=served)
            except JobFailedError:
                self._end_ranges(payload_failed=True)
                raise
            self._end_ranges()
        self.payload_report = read_report(self.folder)
        if self.ranges:
            self.payload_report = replace(self.payload_report, events=self.ranges.events)
        outputs = written(self.job.outputs, self.folder)
        with self._timed("stageout_s"):
            self.reporter.confirm()
            for file in outputs:
                self._store(file)
        self._store_log()
        self.check()

    def _write_lists(self) -> None:
        """The lists of inputs of a job that merges. Raises JobFailedError."""
        try:
            write_lists(lists_in(self.job.write_to_file), self.folder)
        except (BadJobError, OSError) as exc:
            raise JobFailedError(
                Code.STAGE_IN_FAILED, f"The job's lists of inputs could not be written: {exc}"
            ) from exc

    def _open_ranges(self, readable: Readable) -> RangeService:
        """Begin to fetch ranges of events. Raises JobFailedError, InterruptedCallError."""
        until = (self.terminated, self.reporter.killed)
        try:
            queue_data = self._queue_data(self.settings.patience_s, until)
            storage_map = self._storage_map(self.settings.patience_s, until)
        except (RefusedError, UnreachableError) as exc:
            raise JobFailedError(Code.NO_STORAGE, f"The server did not say where outputs go: {exc}") from exc
        name = endpoint_of_ranges(queue_data)
        store = RangeStore(base_folder(name, storage_map), number_of(name, storage_map), self.check)
        calls = RangeCalls(self.client, self.job, self.settings.patience_s, self.reporter.obey)
        try:
            files = RangeFiles(self.folder, lambda file, check: stage_in([file], self.folder, check, readable))
            service = RangeService(self.job, self.folder, calls, store, until, zip_every_s(queue_data), files=files)
        except OSError as exc:
            raise JobFailedError(Code.SETUP_FAILED, f"The channel for ranges could not be opened: {exc}") from exc
        service.start()
        return service

    def _end_ranges(self, *, payload_failed: bool = False) -> None:
        """Store and report the ranges that are finished. Raises JobFailedError unless the payload has failed already."""
        if self.ranges is None:
            return
        if self.reporter.orders:
            self.ranges.abandon()
            return
        try:
            if self.terminated.is_set:
                self.ranges.finish(parting_s(self.terminated) / 2, ())
            else:
                self.ranges.finish()
        except (JobFailedError, InterruptedCallError) as exc:
            if not payload_failed:
                raise
            log.warning("ranges.lost job=%d trouble=%s", self.job.id, exc)

    def _run_payload(self, argv: list[str], *, served: bool) -> None:
        """Run it under watch; `served` says that the program is the site's.

        Raises JobFailedError when it fails or is stopped; none of its processes is left either way.
        """
        walls = self.settings.walls
        environment = payloads.environment(self.job, self.folder, os.environ, self.settings.server, walls)
        if self.ranges:
            environment[VARIABLE] = address(self.folder, walls)
        if self.job.secrets:
            payloads.put_secrets(self.folder, self.job.secrets)
        memory_mb = memory_limit_mb(self.job.memory_mb, self.settings.memory_mb)
        limits = with_disk(
            Limits(memory_mb, self.job.walltime_s), self.job.disk_mb, self.job.queue_disk_mb, free_mb(self.folder)
        )
        fuses = limit(memory_mb, limits.disk_mb, self.folder)
        payload = payloads.Payload(argv, self.folder, environment, walls, fuses, served=served)
        log.info("payload.started pid=%d words=%d", payload.pid, len(argv))
        self.reporter.progress.start = payload.started
        gauge = Gauge(payload.family, self.folder)
        stopped: Failure | None = Failure(Code.PILOT_PROBLEM, "The pilot lost track of the payload")
        try:
            self.reporter.enter("running")
            stopped = self._watch(payload, gauge, limits)
        finally:
            ended = payload.end(GRACE_S if stopped and stopped.code not in NO_GRACE else 0.0)
            last = gauge.final(ended.peak_kb)
            self._book(gauge)
            (self.folder / payloads.SECRETS).unlink(missing_ok=True)
            payloads.mask_secrets(self.folder, self.job.secrets)
            self.metrics["workfolder_mb"] = last.disk_kb // 1024
            self.reporter.progress.exit_code = ended.exit_code
            log.info(
                "payload.ended exit_code=%d wall_s=%.2f cpu_s=%.2f max_rss_kb=%d",
                ended.exit_code,
                last.wall_s,
                last.cpu_s,
                gauge.max_rss_kb,
            )
        if stopped:
            raise JobFailedError(stopped.code, stopped.diag)
        if ended.exit_code:
            said = read_report(self.folder)
            corrupted = [file.lfn for file in self.job.inputs if file.lfn in said.corrupted and self.job.merges_ranges]
            raise payloads.exit_failure(ended.exit_code, self.folder, said.failure, corrupted)
        # What a quick payload left on the disk counts, even if nobody saw it being written; and of outputs also what they
        # take nowhere yet: a file with holes fills the storage with all of its length.
        last = replace(last, holes_kb=holes_kb(self.folder / file.lfn for file in self.job.outputs))
        if over := verdict(last, replace(limits, memory_mb=0, wall_s=0)):
            raise JobFailedError(over.code, over.diag)

    def _watch(self, payload: payloads.Payload, gauge: Gauge, limits: Limits) -> Failure | None:
        """Look at the payload until it ends; returns why it must be ended before, or None when it ended by itself."""
        latches = [self.terminated, self.reporter.killed]
        if self.ranges:
            latches += [self.ranges.stopped, self.reporter.softly_killed]
        pause_s = FIRST_LOOK_S
        while not payload.wait(latches, pause_s):
            if self.ranges and self.reporter.softly_killed.is_set and self.reporter.softly_killed in latches:
                latches.remove(self.reporter.softly_killed)
                self.ranges.softly_stop()
            try:
                self.check()
            except JobFailedError as exc:
                return exc.failure
            over = verdict(gauge.measure(), limits)
            self._book(gauge)
            if over:
                return over
            payload.family.reap_orphans(payload.pid)
            pause_s = min(pause_s * 2, LOOK_EVERY_S)
        return None

    def _book(self, gauge: Gauge) -> None:
        progress = self.reporter.progress
        progress.cpu_s, progress.max_rss_kb, progress.avg_rss_kb = gauge.last.cpu_s, gauge.max_rss_kb, gauge.avg_rss_kb

    def _store(self, file: Output) -> None:
        base = self._base(file.endpoint, self.settings.patience_s, (self.terminated, self.reporter.killed))
        self._stage_out(file, base, self.check)

    def _stage_out(self, file: Output, base: Path, check: Callable[[], None]) -> None:
        known = reads_from(self.job.inputs, base) or base in holding_folders(self._map or {})
        self.stored.append(stage_out(file, base, self.folder, check, holds_files=known))

    def _store_log(self) -> None:
        """Pack and store the log. Raises JobFailedError."""
        if self.job.log:
            make_log(self.folder / self.job.log.lfn, self.folder)
            self._store(self.job.log)

    def _clean_up_after_failure(self) -> None:
        """Take back outputs, which would be nobody's, and leave the log.

        Not so when the server stopped the job: another attempt may write files of the same names by now.
        """
        if not self.reporter.orders:
            take_back(self.stored)
        self.stored = []
        if self.reporter.disowned or not self.job.log:
            return
        try:
            make_log(self.folder / self.job.log.lfn, self.folder)
            # The checks would stop this copy too; a log is small, and the only trace of what went wrong.
            if self.terminated.is_set:
                base = self._base(self.job.log.endpoint, parting_s(self.terminated) / 2, ())
            else:
                base = self._base(self.job.log.endpoint, self.settings.patience_s, (self.terminated,))
            self._stage_out(self.job.log, base, lambda: None)
        except (JobFailedError, InterruptedCallError) as exc:
            log.warning("log.lost job=%d trouble=%s", self.job.id, exc)
        except Exception:  # the failure must be reported whatever becomes of the log
            log.exception("log.lost job=%d", self.job.id)

    def _base(self, endpoint: str, patience_s: float, until: Sequence[Latch]) -> Path:
        """The folder of a storage endpoint. Raises JobFailedError, InterruptedCallError."""
        if endpoint not in self._bases:
            try:
                name = endpoint
                if not name:
                    name = default_endpoint(self._queue_data(patience_s, until))
                storage_map = self._storage_map(patience_s, until)
            except (RefusedError, UnreachableError) as exc:
                raise JobFailedError(Code.NO_STORAGE, f"The server did not say where outputs go: {exc}") from exc
            self._bases[endpoint] = base_folder(name, storage_map)
        return self._bases[endpoint]

    def _storages(self) -> list[Path]:
        """The folders of all storages of this machine. Raises JobFailedError, InterruptedCallError."""
        try:
            return base_folders(self._storage_map(self.settings.patience_s, (self.terminated, self.reporter.killed)))
        except (RefusedError, UnreachableError) as exc:
            raise JobFailedError(Code.NO_STORAGE, f"The server did not say where inputs are: {exc}") from exc

    def _queue_data(self, patience_s: float, until: Sequence[Latch]) -> dict[str, Any]:
        """Raises what `Client.get_json` raises."""
        path = f"/cache/schedconfig/{self.settings.queue}.all.json"
        return self.client.get_json(path, patience_s=patience_s, until=until)

    def _storage_map(self, patience_s: float, until: Sequence[Latch]) -> dict[str, Any]:
        """Asked for once. Raises what `Client.get_json` raises."""
        if self._map is None:
            self._map = self.client.get_json(STORAGE_MAP, patience_s=patience_s, until=until)
        return self._map

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.metrics[name] = round(time.monotonic() - begun, 2)


@contextlib.contextmanager
def _pilot_log(path: Path) -> Iterator[None]:
    """Everything that the pilot logs meanwhile also goes into the job's folder."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("tasks_app.worker_node.pilot")
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
