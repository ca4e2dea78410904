"""A client of the site's API (v2) for scripts: submit tasks, watch them, command them, read everything.

Standard library only, and this one file is enough: copy it beside a script, or import it from a checkout.

    client = Client("https://jedi.example.org")          # token: argument, JEDI_TOKEN, or ~/.config/jedi/token
    task = client.submit({"taskName": "user.ada.test", ...})
    print(task.wait(on_change=print).status)

What the site refuses is raised as an ApiError with the fields of its problem document.
"""

from __future__ import annotations

import difflib
import hashlib
import http.client
import io
import json
import os
import random
import shutil
import stat
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from pathlib import Path
from typing import IO, Any, Union
from urllib.parse import quote, urlencode, urlsplit

__all__ = [
    "ApiError",
    "Client",
    "Conflict",
    "Fault",
    "Invalid",
    "NotAllowed",
    "NotFound",
    "Progress",
    "SubmissionWarning",
    "Task",
    "Unavailable",
]

Value = Union[str, int, bool, datetime, Collection[str]]  # noqa: UP007 - evaluated by Python 3.9, too
PAGE = 200
POLL_S = (1.0, 15.0)
"""A wait asks that often: at first, and at most when nothing has changed for a while."""
BACK_OFF_S = (0.5, 30.0)
BUSY = (429, 503)
WITHOUT_TOKEN = " No token was given: pass it to Client, set JEDI_TOKEN, or store it in ~/.config/jedi/token."
PIECE = 1 << 20
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Fault:
    """One field that breaks a rule: where, a short stable name of the rule, and a sentence."""

    field: str
    rule: str
    message: str


class ApiError(Exception):
    """The site refused a request. `status` is HTTP's code, 0 when there was no answer; `faults` name fields."""

    def __init__(self, status: int, title: str, detail: str, faults: tuple[Fault, ...] = ()) -> None:
        self.status, self.title, self.detail, self.faults = status, title, detail, faults
        said = "; ".join(f"{f.field}: {f.message}" if f.field else f.message for f in faults)
        super().__init__(f"{detail} {said}".strip() or title)


class Invalid(ApiError):
    """The request breaks rules (400, 413, 415, 422): `faults` say which."""


class NotAllowed(ApiError):
    """No valid token (401), or its owner may not do this (403)."""


class NotFound(ApiError):
    """There is no such thing (404)."""


class Conflict(ApiError):
    """The state of the object does not allow this (409)."""


class Unavailable(ApiError):
    """The site did not answer, or was too busy, as often as it was asked."""


class SubmissionWarning(UserWarning):
    """The site took a task, and something in it may not be what was meant."""


_KINDS: dict[int, type[ApiError]] = {
    400: Invalid,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


@dataclass(frozen=True)
class Progress:
    """How far a task is: its state, input files, and the numbers of its jobs by state."""

    task_id: int
    status: str
    is_final: bool
    total: int
    finished: int
    failed: int
    percent: int
    jobs: Mapping[str, int]
    message: str

    def __str__(self) -> str:
        jobs = ", ".join(f"{count} {status}" for status, count in self.jobs.items()) or "no jobs"
        said = f": {self.message}" if self.message else ""
        files = "1 file" if self.total == 1 else f"{self.total} files"
        return f"task {self.task_id} {self.status}, {self.finished} of {files}, {jobs}{said}"


@dataclass(frozen=True)
class Task:
    """A task as the site last described it. `data` has all its fields; the methods ask the site."""

    id: int
    name: str
    status: str
    user: str
    data: Mapping[str, Any] = field(repr=False)
    client: Client = field(repr=False, compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the site warned of when `submit` gave it the task."""
        return tuple(self.data.get("warnings") or ())

    def refresh(self) -> Task:
        return self.client.task(self.id)

    def progress(self) -> Progress:
        return self.client.progress(self.id)

    def wait(self, **how: Any) -> Task:
        """See Client.wait."""
        return self.client.wait(self.id, **how)

    def why(self) -> dict[str, Any]:
        return self.client.why(self.id)

    def jobs(self, **filters: Value) -> Iterator[dict[str, Any]]:
        return self.client.rows(f"tasks/{self.id}/jobs", **filters)

    def datasets(self, **filters: Value) -> Iterator[dict[str, Any]]:
        return self.client.rows(f"tasks/{self.id}/datasets", **filters)

    def log(self) -> Iterator[dict[str, Any]]:
        """States of the task with who and why, newest first."""
        return self.client.rows(f"tasks/{self.id}/log")

    def download(self, folder: str | os.PathLike[str], **how: Any) -> list[Path]:
        """See Client.download."""
        return self.client.download(self.id, folder, **how)

    def command(self, name: str, reason: str = "", **parameters: Any) -> dict[str, Any]:
        return self.client.command(self.id, name, reason, **parameters)

    def kill(self, reason: str = "") -> dict[str, Any]:
        return self.command("kill", reason)

    def finish(self, reason: str = "", *, soft: bool = False) -> dict[str, Any]:
        """End the task with what it has. `soft`: let its running jobs end first."""
        return self.command("finish", reason, **({"soft": True} if soft else {}))

    def retry(self, reason: str = "", **parameters: Any) -> dict[str, Any]:
        return self.command("retry", reason, **parameters)

    def pause(self, reason: str = "") -> dict[str, Any]:
        return self.command("pause", reason)

    def resume(self, reason: str = "") -> dict[str, Any]:
        return self.command("resume", reason)


class Client:
    """Speaks to one site.

    `server` is its address, by default JEDI_SERVER_URL. Requests that may be sent twice are sent again, `tries` times in all,
    when the site is busy (429, 503) or does not answer: all that read, and submissions, which carry a key. Commands and
    uploads are sent once. `clock` and `sleep` count and wait in seconds.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 60,
        tries: int = 5,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        given = (server or os.environ.get("JEDI_SERVER_URL") or "").rstrip("/")
        self.server = given.removesuffix("/api/v2").rstrip("/")  # some give the address of the interface
        if urlsplit(self.server).scheme not in ("http", "https"):
            if self.server and "://" not in self.server:
                raise ValueError(f"the address {self.server} must begin with http:// or https://")
            raise ValueError(
                "the address of the site is missing: pass it to Client or set JEDI_SERVER_URL, for example to https://jedi.example.org"
            )
        self._token = _whole(token) or _whole(os.environ.get("JEDI_TOKEN")) or _token_of_file()
        self._timeout_s, self._tries, self._clock, self._sleep = timeout_s, tries, clock, sleep
        self._opener = urllib.request.build_opener(_NoRedirect)

    # Tasks

    def submit(self, params: Mapping[str, Any], *, key: str | None = None, allow_active: bool = False) -> Task:
        """Submit a task (a dictionary of JEDI's task parameters).

        The same `key` gives the same task for 24 hours, so a script that starts again may use its own. With uniqueTaskName
        in the parameters the task may be an older one, which runs again; with `allow_active` also one that runs. What may not be
        what was meant is told by `warnings.warn` (a SubmissionWarning each), and stands in `task.warnings`.
        """
        path = "/api/v2/tasks/" + ("?allow_active=true" if allow_active else "")
        made = self._json("POST", path, params, headers={"Idempotency-Key": key or str(uuid.uuid4())}, again=True)
        for said in made.get("warnings") or ():
            warnings.warn(said, SubmissionWarning, stacklevel=2)
        return self._task(made) if "status" in made else self.task(made["id"])

    def task(self, task: int | str) -> Task:
        """The task of a number or of a name; of several tasks of the name the newest. Raises NotFound."""
        if isinstance(task, str) and not task.isdecimal():
            for found in self.tasks(name=task, ordering="-id"):
                if found.name == task:
                    return found
            latest = self._json("GET", self._address("tasks", {"page_size": PAGE, "ordering": "-id"}))["results"]
            names = [row["name"] for row in latest if row["name"] and _differ_little(task, row["name"])]
            near = difflib.get_close_matches(task, names, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise NotFound(404, "Not Found", f"There is no task of the name {task}.{meant}")
        return self._task(self._json("GET", f"/api/v2/tasks/{task}/"))

    def tasks(self, **filters: Value) -> Iterator[Task]:
        """Tasks, newest first: tasks(user="ada", status=["failed", "broken"], ordering="-current_priority")."""
        return (self._task(row) for row in self.rows("tasks", **filters))

    def progress(self, task_id: int) -> Progress:
        found = self._json("GET", f"/api/v2/tasks/{task_id}/progress/")
        done = found["progress"]
        return Progress(
            found["id"],
            found["status"],
            found["is_final"],
            done["total"],
            done["finished"],
            done["failed"],
            done["percent"],
            found["jobs"],
            found["error_dialog"] or "",
        )

    def wait(
        self,
        task: Task | int,
        until: Collection[str] = (),
        timeout_s: float | None = None,
        on_change: Callable[[Progress], object] | None = None,
    ) -> Task:
        """Wait until the task's state is one of `until`, or any final one. `on_change` is told of each change.

        Raises TimeoutError with what the task does then.
        """
        task_id = task.id if isinstance(task, Task) else task
        end = None if timeout_s is None else self._clock() + timeout_s
        last: Progress | None = None
        pause_s = POLL_S[0]
        while True:
            now = self.progress(task_id)
            if now != last:
                if on_change:
                    on_change(now)
                last, pause_s = now, POLL_S[0]
            if now.is_final or now.status in until:
                return self.task(task_id)
            left_s = pause_s if end is None else end - self._clock()
            if left_s <= 0:
                raise TimeoutError(f"after {timeout_s} s: {now}")
            self._sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, POLL_S[1])

    def why(self, task: Task | int) -> dict[str, Any]:
        """What the task waits for: gates, verdicts of the brokers, what would help."""
        return dict(self._json("GET", f"/api/v2/tasks/{task.id if isinstance(task, Task) else task}/why/"))

    def command(self, task: Task | int, name: str, reason: str = "", **parameters: Any) -> dict[str, Any]:
        """Give a command: kill, finish, retry, incexec, pause, resume, … Raises Conflict when the task's state refuses it."""
        task_id = task.id if isinstance(task, Task) else task
        body = {"command": name, "reason": reason, **parameters}
        return dict(self._json("POST", f"/api/v2/tasks/{task_id}/commands/", body))

    # Groups of a task's files

    def subjobs(
        self, task: Task | int, numbers: Collection[int] | None = None, *, outputs: bool = False
    ) -> dict[str, Any]:
        """The groups of a task's files as numbered subjobs, all or those of the numbers: what their states come to (`status`),
        their numbers by state, and of each (`subjobs`) state, jobs, exit code and error; with `outputs` what it made."""
        task_id = task.id if isinstance(task, Task) else task
        asked = {"outputs": _written(outputs), **({} if numbers is None else {"numbers": _ranges(numbers)})}
        return dict(self._json("GET", f"/api/v2/tasks/{task_id}/subjobs/?{urlencode(asked)}"))

    def subjob_act(self, task: Task | int, act: str, numbers: Collection[int], reason: str = "") -> dict[str, Any]:
        """Kill subjobs ("kill"), or try those again that failed or were killed ("resubmit"). Raises Conflict."""
        task_id = task.id if isinstance(task, Task) else task
        body = {"act": act, "numbers": _ranges(numbers), "reason": reason}
        return dict(self._json("POST", f"/api/v2/tasks/{task_id}/subjobs/", body))

    def catalogue_files(self, dataset: str) -> list[dict[str, Any]]:
        """The files of a dataset of the catalogue, by name: lfn, size, events. Raises NotFound."""
        return list(self._json("GET", f"/api/v2/catalogue/{quote(dataset)}/files/")["files"])

    # Everything else that has a list

    def rows(self, resource: str, **filters: Value) -> Iterator[dict[str, Any]]:
        """All rows of a list, read page by page: rows("queues"), rows("tasks/5/log"), rows("jobs", task=5)."""
        path: str | None = self._address(resource, {"page_size": PAGE, **filters})
        while path:
            page = self._json("GET", path)
            yield from page["results"]
            # The site may know itself by another address than this script does; the token goes nowhere else.
            path = page["next"] and urlsplit(page["next"])._replace(scheme="", netloc="").geturl()

    def jobs(self, **filters: Value) -> Iterator[dict[str, Any]]:
        """Jobs, newest first: jobs(task=5, status=["failed"])."""
        return self.rows("jobs", **filters)

    def job(self, job_id: int) -> dict[str, Any]:
        return dict(self._json("GET", f"/api/v2/jobs/{job_id}/"))

    def files(self, dataset_id: int | None = None, **filters: Value) -> Iterator[dict[str, Any]]:
        """Files of a dataset of a task, or of a name: files(7, status="failed"), files(lfn="data.0001.root")."""
        return self.rows("files" if dataset_id is None else f"datasets/{dataset_id}/files", **filters)

    def export(self, resource: str, to: IO[bytes], form: str = "csv", **filters: Value) -> None:
        """Write a whole list into a file that is open for bytes, as csv or ndjson. Raises Unavailable when it was cut off."""
        with self._open("GET", self._address(resource, {"format": form, **filters}), again=True) as answer:
            try:
                shutil.copyfileobj(answer, to)
            except (http.client.HTTPException, OSError) as exc:
                raise Unavailable(0, "Cut off", f"The list was cut off: {exc}.") from exc

    def download(
        self,
        task: Task | int,
        folder: str | os.PathLike[str],
        *,
        logs: bool = False,
        on_file: Callable[[Path], object] | None = None,
    ) -> list[Path]:
        """Fetch the outputs of a task into a folder, which is made if need be; with `logs`, also its log archives.

        Files that are there already are kept, and a download that was cut off goes on where it ended. Size and checksum of
        each are compared with the site's books before the file gets its name. `on_file` is told of each file that is there.
        What cannot be had does not hold up the rest: the first such error is raised at the end. Never overwrites: a file of
        the name with another content is a FileExistsError.
        """
        task_id, target = task.id if isinstance(task, Task) else task, Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        wanted = ("output", "log") if logs else ("output",)
        there: list[Path] = []
        faults: list[Exception] = []
        for dataset in self.rows(f"tasks/{task_id}/datasets"):
            for row in self.files(dataset["id"], status="finished") if dataset["type"] in wanted else ():
                try:
                    path = self.fetch(row, target)
                except NotAllowed:
                    raise
                except (ApiError, OSError, ValueError) as exc:
                    faults.append(exc)
                    continue
                there.append(path)
                if on_file:
                    on_file(path)
        if faults:
            raise faults[0]
        return there

    def fetch(self, file: Mapping[str, Any], folder: str | os.PathLike[str]) -> Path:
        """Fetch one file, a row of `files` or of a job's files, into a folder. See `download`."""
        return save(file, Path(folder), lambda have: self._content(file.get("file_id") or file["id"], have))

    def _content(self, file_id: int, have: int) -> Iterator[bytes]:
        """A file from its byte `have` on. What is cut off is asked for again, until `tries` in a row bring nothing."""
        failed = 0
        while True:
            headers = {"Range": f"bytes={have}-"} if have else {}
            said: Exception | None = None
            with self._open("GET", f"/api/v2/files/{file_id}/content", headers=headers, again=True) as answer:
                left = have if answer.status == 200 else 0  # the whole file came: what is there already is left out
                try:
                    while piece := answer.read(PIECE):
                        skipped, left = min(left, len(piece)), max(left - len(piece), 0)
                        failed, have = 0, have + len(piece) - skipped
                        yield piece[skipped:]
                except (http.client.HTTPException, OSError) as exc:
                    said = exc
                if said is None and not answer.length:
                    return
            failed += 1
            if failed == self._tries:
                raise Unavailable(0, "Cut off", f"The file was cut off: {said or 'the connection was closed'}.")
            self._sleep(min(BACK_OFF_S[1], BACK_OFF_S[0] * 2**failed))

    def me(self) -> dict[str, Any]:
        """Who the token stands for: name, roles, rights."""
        return dict(self._json("GET", "/api/v2/me/"))

    def upload(self, sandbox: str | os.PathLike[str]) -> str:
        """Give a folder or a .tar.gz with one's code to the site; returns the name by which jobs fetch it."""
        path = Path(sandbox)
        name = f"sources.{uuid.uuid4()}.tar.gz"
        with tempfile.TemporaryFile() as packed:
            if path.is_dir():
                with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                    for inside in sorted(path.iterdir()):
                        archive.add(inside, inside.name)
                packed.seek(0)
                self._send_file(name, packed)
            else:
                with path.open("rb") as given:
                    self._send_file(name, given)
        return name

    def _send_file(self, name: str, file: IO[bytes]) -> None:
        mark = uuid.uuid4().hex
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/gzip\r\n\r\n"
        ).encode()
        tail = f"\r\n--{mark}--\r\n".encode()
        size = os.fstat(file.fileno()).st_size
        headers = {
            "Content-Type": f"multipart/form-data; boundary={mark}",
            "Content-Length": str(len(head) + size + len(tail)),
        }
        pieces = _pieces(io.BytesIO(head), file, io.BytesIO(tail))
        with self._open("POST", "/api/v1/file_server/upload_cache_file", pieces, headers) as answer:
            said = json.load(answer)
        if not said.get("success"):
            raise Invalid(answer.status, "Refused", str(said.get("message") or "The sandbox was refused."))

    # Requests

    def _task(self, data: Mapping[str, Any]) -> Task:
        return Task(data["id"], data["name"] or "", data["status"], data["user"], data, self)

    def _address(self, resource: str, parameters: Mapping[str, Value]) -> str:
        given = {name: _written(value) for name, value in parameters.items()}
        return f"/api/v2/{quote(resource.strip('/'))}/?{urlencode(given)}"

    def _json(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, again: bool = False
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data is not None else {}
        with self._open(method, path, data, {**kind, **(headers or {})}, again=again or method == "GET") as answer:
            return json.load(answer)

    def _open(
        self, method: str, path: str, data: Any = None, headers: Mapping[str, str] | None = None, *, again: bool = False
    ) -> http.client.HTTPResponse:
        """The answer to a request. Raises ApiError; with `again`, only after trying as often as allowed."""
        sent = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = urllib.request.Request(self.server + path, data, {**sent, **(headers or {})}, method=method)
        tries = self._tries if again else 1
        for attempt in range(1, tries + 1):
            wait_s = min(BACK_OFF_S[1], BACK_OFF_S[0] * 2**attempt) * random.uniform(0.5, 1)
            try:
                answer: http.client.HTTPResponse = self._opener.open(request, timeout=self._timeout_s)
                return answer
            except urllib.error.HTTPError as exc:
                with exc:
                    problem = _problem(exc, WITHOUT_TOKEN if exc.code == 401 and not self._token else "")
                if exc.code not in BUSY or attempt == tries:
                    raise problem from None
                wait_s = max(wait_s, _seconds(exc.headers))
            except (OSError, http.client.HTTPException) as exc:
                if attempt == tries:
                    said = getattr(exc, "reason", None) or exc
                    raise Unavailable(0, "No answer", f"{self.server} does not answer: {said}.") from exc
            self._sleep(wait_s)
        raise ValueError("tries must be at least 1")


def save(file: Mapping[str, Any], folder: Path, content: Callable[[int], Iterable[bytes]]) -> Path:
    """Write a file into a folder under its name, once its size and checksum are those of `file` (lfn, size, checksum, id).

    `content` gives its bytes from a position on. Raises Unavailable when they are not the right ones, ValueError for a name
    that leads elsewhere, FileExistsError for another file of that name.
    """
    name, size, checksum = str(file["lfn"]), file["size"], file["checksum"]
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise ValueError(f"{name!r} is not a name for a file in a folder")
    target, part = folder / name, folder / f".{file['id']}.part"
    if os.path.lexists(target):
        if target.is_file() and _is_right(target, size, checksum):
            return target
        raise FileExistsError(f"{target} already exists, with other content than the file at the site")
    for resumed in (True, False):
        if not resumed or size is None or (part.is_file() and part.stat().st_size > size):
            part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o666), "wb") as opened:
            have = os.fstat(opened.fileno()).st_size
            fresh = have == 0
            try:
                if have != size or fresh:
                    opened.writelines(content(have))
            finally:
                opened.flush()
                if size and not os.fstat(opened.fileno()).st_size:
                    part.unlink()  # nothing has come yet
        if part.is_file() and _is_right(part, size, checksum):
            os.replace(part, target)
            return target
        if fresh:
            break
    part.unlink(missing_ok=True)
    raise Unavailable(0, "Damaged", f"{name} differs from what the site has recorded: {size} bytes, {checksum}.")


def _is_right(path: Path, size: int | None, checksum: str | None) -> bool:
    """Whether a file has this size and checksum (ad: Adler-32, md: MD5, both in hexadecimal), as far as they are given."""
    if size is not None and path.stat().st_size != size:
        return False
    kind, _, wanted = (checksum or "").partition(":")
    if kind not in ("ad", "md"):
        return True
    adler, md5 = 1, hashlib.md5(usedforsecurity=False)
    with path.open("rb") as opened:
        while piece := opened.read(PIECE):
            if kind == "ad":
                adler = zlib.adler32(piece, adler)
            else:
                md5.update(piece)
    return (f"{adler:08x}" if kind == "ad" else md5.hexdigest()) == wanted.lower().zfill(8)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the site that was named, and to no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _pieces(*files: IO[bytes]) -> Iterator[bytes]:
    for file in files:
        while piece := file.read(1 << 20):
            yield piece


def _problem(answer: urllib.error.HTTPError, more: str) -> ApiError:
    """What a refusal says, be it a problem document or not, and what we know about it."""
    try:
        said = json.loads(answer.read(1 << 20))
    except (ValueError, OSError, http.client.HTTPException):
        said = None
    said = said if isinstance(said, dict) else {}
    faults = tuple(
        Fault(str(e.get("field", "")), str(e.get("rule", "")), str(e.get("message", "")))
        for e in said.get("errors", ())
        if isinstance(e, dict)
    )
    kind = _KINDS.get(answer.code, ApiError)
    title = str(said.get("title") or answer.reason)
    return kind(answer.code, title, str(said.get("detail") or f"{answer.code} {title}") + more, faults)


def _seconds(headers: Message) -> float:
    """How long the site asks to wait, at most as long as one waits anyway."""
    text = headers.get("Retry-After", "0")
    return min(float(text), BACK_OFF_S[1]) if text.isdecimal() else 0.0


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers as 1,4-7."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _written(value: Value) -> str:
    """A value of a filter as it stands in an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, (str, int)) else ",".join(value)


def _differ_little(name: str, other: str) -> bool:
    """Whether two names are near without the fields that both begin with."""
    fields, others = name.rstrip("/").split("."), other.rstrip("/").split(".")
    pairs = list(zip(fields, others))  # noqa: B905 - Python 3.9 has no strict
    same = next((at for at, (one, two) in enumerate(pairs) if one != two), len(pairs))
    one, two = ".".join(fields[same:]), ".".join(others[same:])
    return one.startswith(two) or two.startswith(one) or bool(difflib.get_close_matches(one, [two]))


def _whole(token: str | None) -> str | None:
    """The token without what editors and shells put around it. Raises ValueError, which does not show it."""
    token = (token or "").strip()
    if not all("!" <= sign <= "~" for sign in token):
        raise ValueError(
            "the token contains a space, a line break or another character that tokens cannot have; it is not shown here"
        )
    return token or None


def _token_of_file() -> str | None:
    """The token of this user's file, if there is one. Raises PermissionError when others can read it."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(base) / "jedi" / "token"
    if not path.is_file():
        return None
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PermissionError(f"{path} can be read by others: chmod 600 {path}")
    return _whole(path.read_text())
