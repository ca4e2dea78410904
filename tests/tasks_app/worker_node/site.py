"""A small real site: hands out jobs, records what pilots report, can answer 503 or be away. Loopback only."""

from __future__ import annotations

import itertools
import json
import threading
import zlib
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from jedisite.web.problems import strict_json

TOKEN = "token-of-the-test-pilot"
TRANSFORMS = Path(__file__).resolve().parents[3] / "tasks_app" / "transforms"
LIMIT_S = 30.0


class Site:
    """One installation with one queue Q and one storage element SE. All that pilots say is in `updates` and `calls`."""

    def __init__(self, folder: Path) -> None:
        self.storage = folder / "storage"
        self.storage.mkdir()
        self.storage_holds_files = False
        self.jobs: deque[dict[str, Any]] = deque()
        self.updates: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.acquired: list[dict[str, Any]] = []
        self.commands: dict[int, str] = {}
        self.forbidden: set[int] = set()
        self.given_up: set[int] = set()
        self.transforms: dict[str, str] = {}
        self.sandboxes: dict[str, bytes] = {}
        self.refuse_all = False
        self.deaf = False
        self.largest_body = 1 << 30
        self.unacceptable: tuple[str, ...] = ()
        """Fields of a final report that the site does not take."""
        self.ranges: dict[int, deque[dict[str, Any]]] = {}
        """Ranges of events that wait, by job."""
        self.range_reports: list[dict[str, Any]] = []
        self.range_calls: list[dict[str, Any]] = []
        self.zip_time_gap: float = 1000
        self.changed = threading.Condition()
        self._last_id = 100
        self._port = 0
        self._server: _Server | None = None
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Listen; the second time on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), _Handler)
        self._server.site = self
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def wait(self, condition: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
        """Wait until something that pilots did makes the condition true; returns its value."""
        with self.changed:
            value = self.changed.wait_for(condition, limit_s)
            assert value, f"not within {limit_s:g} s: {what}; updates: {self.updates}; calls: {self.calls}"
            return value

    def wait_final(self, job_id: int) -> dict[str, Any]:
        """The final report of a job."""

        def final() -> dict[str, Any] | None:
            return next((u for u in self.of(job_id) if u["job_status"] in ("finished", "failed")), None)

        report: dict[str, Any] = self.wait(final, f"the final report of job {job_id}")
        return report

    def wait_call(self, start: str) -> str:
        """The path of the first call that begins so; a payload says with it that it has come so far."""

        def path() -> str | None:
            return next((call for call in self.calls if call.startswith(start)), None)

        call: str = self.wait(path, f"a call of {start}")
        return call

    def of(self, job_id: int) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["job_id"] == job_id]

    def states(self, job_id: int) -> list[str]:
        """The states of a job in their order, heartbeats left out."""
        return [state for state, _ in itertools.groupby(update["job_status"] for update in self.of(job_id))]

    def store(self, name: str, content: bytes) -> str:
        """An input file; returns its address."""
        path = self.storage / name
        path.write_bytes(content)
        return f"file://localhost{path}"

    def offer(
        self,
        program: str,
        parameters: str = "",
        *,
        inputs: dict[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        **overrides: Any,
    ) -> int:
        """Put a job up; `program` is the name of a transform or the text of one. Returns its id."""
        self._last_id += 1
        number = self._last_id
        if program.startswith("#!"):
            self.transforms[f"program{number}"] = program
            program = f"program{number}"
        inputs = inputs or {}
        log = f"log.{number}.tgz"
        job: dict[str, Any] = {
            "PandaID": number,
            "taskID": 10_000_001,
            "attemptNr": 1,
            "transformation": program,
            "jobPars": parameters,
            "inFiles": ",".join(inputs) or "NULL",
            "fsize": ",".join(str(len(content)) for content in inputs.values()),
            "checksum": ",".join(f"ad:{zlib.adler32(content):08x}" for content in inputs.values()),
            "surlsIn": [self.store(name, content) for name, content in inputs.items()],
            "outFiles": ",".join([*outputs, log]),
            "logFile": log,
            "logGUID": "11111111-2222-3333-4444-555555555555",
            "scopeOut": ",".join("user.jdoe" for _ in outputs),
            "scopeLog": "user.jdoe",
            "ddmEndPointOut": ",".join("SE" for _ in (*outputs, log)),
            "coreCount": 1,
            "minRamCount": 0,
            "maxWalltime": 0,
            "maxDiskCount": 0,
            "fence": 7,
            "jobSecret": f"secret-{number}",
        }
        with self.changed:
            self.jobs.append(job | overrides)
        return number

    def is_open(self, path: str) -> bool:
        """Whether anybody may have it: payloads bear no token."""
        return path.startswith("/told/") or path.removeprefix("/cache/") in self.sandboxes

    def answer(self, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """What the contract says; called with the condition held."""
        if path == "/api/v1/pilot/acquire_jobs":
            assert body is not None
            self.acquired.append(body)
            if not self.jobs:
                return 200, _json({"success": False, "message": "no jobs", "data": None})
            data = {"StatusCode": 0, "jobs": [self.jobs.popleft()]}
            return 200, _json({"success": True, "message": "", "data": data})
        if path == "/api/v1/pilot/update_job":
            assert body is not None
            if body["job_id"] in self.forbidden:
                return 403, b"not your job"
            wrong = [name for name in self.unacceptable if name in body]
            if wrong or (fault := _fault(body)):
                return 200, _json(
                    {"success": False, "message": f"{wrong[0]} makes no sense" if wrong else fault, "data": None}
                )
            self.updates.append(body)
            given_up = body["job_status"] == "finished" and body["job_id"] in self.given_up
            command = "tobekilled" if given_up else self.commands.get(body["job_id"], "NULL")
            return 200, _json({"success": True, "message": "", "data": {"StatusCode": 0, "command": command}})
        if path.startswith("/api/v1/event/"):
            assert body is not None
            return self.answer_on_ranges(path, body)
        if path == "/cache/ddmendpoints.json":
            protocols = {"write_wan": [{"endpoint": "file://localhost", "path": f"{self.storage}/"}]}
            told = {"id": 7, "arprotocols": protocols, "holds_files": self.storage_holds_files}
            return 200, _json({"SE": told, "TAPE": {"arprotocols": {}}})
        if path == "/cache/schedconfig/Q.all.json":
            return 200, _json({"astorages": {"write_lan": ["SE"]}, "zip_time_gap": self.zip_time_gap})
        if path.removeprefix("/cache/") in self.sandboxes:
            return 200, self.sandboxes[path.removeprefix("/cache/")]
        name = path.removeprefix("/trf/user/")
        if name in self.transforms:
            return 200, self.transforms[name].encode()
        if "/" not in name and (TRANSFORMS / name).is_file():
            return 200, (TRANSFORMS / name).read_bytes()
        return (200, b"") if path.startswith("/told/") else (404, b"there is no such thing")

    def answer_on_ranges(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """What the contract says of ranges of events; called with the condition held."""
        job = body["job_id"]
        if job in self.forbidden:
            return 403, b"not your job"
        if path.endswith("/acquire_event_ranges"):
            self.range_calls.append(body)
            waiting = self.ranges[job]
            given = [waiting.popleft() for _ in range(min(body["n_ranges"], len(waiting)))]
            return 200, _json({"success": True, "message": "", "data": {"StatusCode": 0, "eventRanges": given}})
        self.range_reports.append(body)
        said = body["event_ranges"]
        count = sum(len(one["eventRanges"]) if "zipFile" in one else 1 for one in said)
        commands = {str(job): self.commands[job]} if job in self.commands else {}
        data = {"StatusCode": 0, "Returns": [True] * count, "Command": commands}
        return 200, _json({"success": True, "message": "", "data": data})

    def ranges_of(self, job: int, state: str) -> list[str]:
        """The ranges of which it was reported that they are in this state, in the order of the reports."""
        items = [
            item
            for body in self.range_reports
            if body["job_id"] == job
            for one in body["event_ranges"]
            for item in one.get("eventRanges", [one])
        ]
        return [item["eventRangeID"] for item in items if item["eventStatus"] == state]

    def zips_of(self, job: int) -> list[dict[str, Any]]:
        reports = [body for body in self.range_reports if body["job_id"] == job]
        return [one["zipFile"] for body in reports for one in body["event_ranges"] if "zipFile" in one]

    def offer_ranges(self, job: int, lfn: str, events: int, length: int, file_id: int = 5, **place: Any) -> list[str]:
        """Ranges of a file for a job that was offered; returns their ids. `place`: what jumbo jobs are told of the file."""
        firsts = range(1, events + 1, length)
        found = [
            {
                "eventRangeID": f"10000001-{job}-{file_id}-{first}-3",
                "startEvent": first,
                "lastEvent": min(first + length - 1, events),
                "LFN": lfn,
                "GUID": "g",
                "scope": "user.jdoe",
                **place,
            }
            for first in firsts
        ]
        with self.changed:
            self.ranges.setdefault(job, deque()).extend(found)
        return [str(one["eventRangeID"]) for one in found]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    site: Site


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self._answer(json.loads(self.rfile.read(size)), size)

    def _answer(self, body: dict[str, Any] | None, size: int = 0) -> None:
        site = self.server.site
        with site.changed:
            site.calls.append(self.path)
            if site.refuse_all or (site.deaf and self.path.endswith("/update_job")):
                status, content = 503, b"busy"
            elif size > site.largest_body:
                status, content = 413, b"The request is too large."
            elif not site.is_open(self.path) and self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, content = 401, b"who are you?"
            else:
                status, content = site.answer(self.path, body)
            site.changed.notify_all()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _fault(body: dict[str, Any]) -> str:
    """As the site has it: what stands in a call is plain JSON, and so are texts that hold JSON."""
    try:
        strict_json(json.dumps(body).encode())
        for name in ("job_output_report", "meta_data"):
            if isinstance(body.get(name), str):
                strict_json(body[name].encode())
    except ValueError as exc:
        return str(exc)
    return ""


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
