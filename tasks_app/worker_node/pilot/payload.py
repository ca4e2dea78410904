"""The payload: its program is fetched from the site and run in the job's work folder."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.job import Job, is_plain_name
from tasks_app.worker_node.pilot.latch import Latch, wait_any
from tasks_app.worker_node.pilot.masking import mask_file, needles_of
from tasks_app.worker_node.pilot.processes import Family, tie_to_pilot
from tasks_app.worker_node.pilot.safe_names import sandbox_of
from tasks_app.worker_node.pilot.site_client import Client, RefusedError, UnreachableError
from tasks_app.worker_node.pilot.walls import Walls, obey, refused_calls

log = logging.getLogger(__name__)

TRANSFORM_LIMIT_BYTES = 10_000_000
SANDBOX_LIMIT_BYTES = 800 * 1024 * 1024
NOT_FOUND = 404
FROM_FILES = frozenset({"file:///"})
"""Begins a --sourceURL of sandboxes that are not fetched."""
TEMPORARY = "tmp"
SECRETS = "panda_secrets.json"
"""Where a payload finds its user's secrets, as with PanDA's pilot. It is gone when the payload is."""
LOGS = ("payload.stdout", "payload.stderr")
SAID_BY_PAYLOAD = (*LOGS, "jobReport.json")
# The pilot's own secrets and settings are not the payload's business.
PRIVATE_PREFIXES = ("JEDI_", "DJANGO_", "DATABASE_URL", "PGPASS")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a payload ended. `peak_kb`: the largest resident memory that one of its processes had, by the kernel."""

    exit_code: int
    peak_kb: int


def fetch_transform(
    transformation: str,
    folder: Path,
    client: Client,
    *,
    inputs: Collection[str],
    patience_s: float,
    until: Sequence[Latch],
) -> str:
    """Put the program into the work folder, before anything else is there; returns its name.

    One that the site does not have may come as an input: then it is not there yet. Raises JobFailedError, InterruptedCallError.
    """
    if "://" in transformation:
        if not client.is_own(transformation):
            diag = f"{transformation} is not on this pilot's server, {client.server}"
            raise JobFailedError(Code.TRANSFORM_NOT_AVAILABLE, diag)
        url = transformation
    else:
        url = f"/trf/user/{transformation}"
    name = url.rpartition("/")[2]
    if not is_plain_name(name) or "?" in name or transformation not in (url, name):
        raise JobFailedError(Code.TRANSFORM_NOT_AVAILABLE, f"{transformation!r} is not the name of a transform")
    path = folder / name
    try:
        program = client.get_bytes(url, patience_s=patience_s, limit=TRANSFORM_LIMIT_BYTES, until=until)
    except (RefusedError, UnreachableError) as exc:
        if isinstance(exc, RefusedError) and exc.status == NOT_FOUND and name in inputs:
            return name
        raise JobFailedError(Code.TRANSFORM_NOT_AVAILABLE, f"The transform {name} could not be fetched: {exc}") from exc
    with open(path, "xb") as file:
        file.write(program)
    path.chmod(0o755)
    return name


def fetch_sandbox(
    argv: Sequence[str], folder: Path, client: Client, *, patience_s: float, until: Sequence[Latch]
) -> None:
    """Put the sandbox that a transform would fetch into the work folder: behind walls it cannot fetch any.

    Raises JobFailedError, InterruptedCallError.
    """
    name = sandbox_of(argv)
    path = folder / name
    if not is_plain_name(name) or FROM_FILES.intersection(word[:8] for word in argv):
        return
    if path.exists():
        raise JobFailedError(Code.BAD_ARGUMENTS, f"The sandbox has the same name as the job's program, {name}")
    url = f"/cache/{quote(name)}"
    try:
        client.get_file(url, path, patience_s=patience_s, limit=SANDBOX_LIMIT_BYTES, until=until)
    except (RefusedError, UnreachableError) as exc:
        path.unlink(missing_ok=True)
        raise JobFailedError(Code.NO_SANDBOX, f"The sandbox {name} could not be fetched: {exc}"[:500]) from exc


def command_line(name: str, parameters: str) -> list[str]:
    """Raises JobFailedError when the parameters' quotes do not close."""
    try:
        return [f"./{name}", *shlex.split(parameters)]
    except ValueError as exc:
        raise JobFailedError(Code.BAD_ARGUMENTS, f"The job's parameters cannot be split into words: {exc}") from None


def environment(
    job: Job, folder: Path, outer: Mapping[str, str], server: str = "", walls: Walls | None = None
) -> dict[str, str]:
    """What the payload finds in its environment: ours without our secrets, our Python first, threads as cores.

    `server` is where it fetches the sandbox. Behind walls it gets little of ours.
    """
    open_air = {key: value for key, value in outer.items() if not key.startswith(PRIVATE_PREFIXES)}
    env = walls.environment(outer) if walls else open_air | {"TMPDIR": str(folder / TEMPORARY)}
    cores = str(job.cores)
    return env | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), outer.get("PATH", os.defpath)]),
        "PandaID": str(job.id),
        "PanDA_TaskID": str(job.task_id),
        "PanDA_AttemptNr": str(job.attempt),
        "PanDA_Server": server,
        "OMP_NUM_THREADS": cores,
        "OPENBLAS_NUM_THREADS": cores,
    }


def put_secrets(folder: Path, secrets: str) -> None:
    """Lay the user's secrets into the work folder, for nobody else on the machine to read."""
    with open(os.open(folder / SECRETS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets)


def mask_secrets(folder: Path, secrets: str) -> None:
    """Take the user's secrets out of all that is read of the payload, sent or packed. What cannot be masked goes."""
    needles = needles_of(secrets) if secrets else []
    for path in [folder / name for name in SAID_BY_PAYLOAD if needles]:
        try:
            mask_file(str(path), needles)
        except FileNotFoundError:
            pass
        except OSError as exc:  # a link, perhaps: what it leads to is not read either
            log.warning("payload.output_not_masked name=%s trouble=%s", path.name, exc)
            with contextlib.suppress(OSError):
                path.unlink()


def _appending(path: str, flags: int) -> int:
    """What is written goes to the end also when the payload has shortened the file: `> /dev/stderr` does."""
    return os.open(path, flags | os.O_APPEND, 0o644)


class Payload:
    """A running payload. Make it in the main thread."""

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        walls: Walls | None = None,
        limits: Mapping[int, int] | None = None,
        *,
        served: bool = False,
    ) -> None:
        """Start it, behind walls if there are any, with these limits of the kernel. Raises JobFailedError.

        `served`: the program is the site's, which asks what it starts to end when it is asked itself.
        """
        self.family = Family()
        self.started = time.time()
        (folder / TEMPORARY).mkdir()
        self._walls, self._served = walls, served
        with contextlib.ExitStack() as files:
            out, err = (files.enter_context(open(folder / name, "xb", opener=_appending)) for name in LOGS)
            refused: tuple[int, ...] = ()
            if walls:
                walls.hand_over(folder)
                refused = files.enter_context(refused_calls())
                argv = walls.around(argv, folder, refused)
            try:
                self._popen = subprocess.Popen(
                    argv,
                    cwd=folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    pass_fds=refused,
                    start_new_session=True,
                    preexec_fn=tie_to_pilot(partial(obey, limits or {})),
                )
            except (OSError, ValueError, subprocess.SubprocessError) as exc:
                raise JobFailedError(Code.PAYLOAD_FAILED, f"The payload {argv[0]} could not be started: {exc}") from exc
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)

    def wait(self, latches: Sequence[Latch], seconds: float) -> bool:
        """Wait for the payload's end, a latch or the end of the time. True when it has ended; it is not reaped."""
        wait_any(latches, seconds, self._pidfd)
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self, grace_s: float) -> Ended:
        """End all that is left of it, and reap it. An `exit_code` above 128 means a signal, as shells have it."""
        walled = self._walls is not None
        self.family.end(self.pid, grace_s=grace_s, asks_its_own=self._served, spare_leader=walled)
        _, status, usage = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._popen.returncode = code  # so that Popen does not ask for a number that may be somebody else's by now
        os.close(self._pidfd)
        return Ended(code if code >= 0 else 128 - code, max(usage.ru_maxrss, self.family.peak_kb))


CORRUPT_ZIP = "corrupt_zip"
SAID_FAILURES = {
    "no_sandbox": Code.NO_SANDBOX,
    "bad_sandbox": Code.SETUP_FAILED,
    CORRUPT_ZIP: Code.INPUT_CHECKSUM_WRONG,
}
"""What a transform can say of its own failure, when the user's command is not to blame."""


def exit_failure(
    exit_code: int, folder: Path, said: tuple[str, str] | None = None, corrupted: Sequence[str] = ()
) -> JobFailedError:
    """The error of a payload that ended with a code other than 0; its last words are taken from its stderr.

    `said` is the kind and the text of a failure in its report, `corrupted` the inputs that are said to be corrupt there.
    """
    if said is not None and said[0] in SAID_FAILURES and (said[0] != CORRUPT_ZIP or corrupted):
        return JobFailedError(SAID_FAILURES[said[0]], said[1], corrupted=corrupted)
    words = last_line(folder / "payload.stderr")
    how = f"ended with exit code {exit_code}"
    if exit_code > 128:
        with contextlib.suppress(ValueError):
            how = f"was ended by {signal.Signals(exit_code - 128).name} (exit code {exit_code})"
    diag = f"The payload {how}"
    return JobFailedError(Code.PAYLOAD_FAILED, diag, exit_code=exit_code, exe_diag=words or diag)


def last_line(path: Path, limit: int = 4096) -> str:
    """The last line that is not empty, from the end of a file of any size; empty when there is none."""
    lines = tail(path, limit).splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def tail(path: Path, limit: int) -> str:
    """The last `limit` bytes of a file as text, without characters that a database cannot keep; "" for a link.

    A payload may have put a link in the place of a file: to something that is not the payload's to read.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read().decode(errors="replace").replace("\0", "")
    except OSError:
        return ""
