"""The local repository: a folder with a folder for each job. Safe against two processes at once, and against kills.

    <root>/lock, next_id          the next number; the lock is held while a number is taken
    <root>/jobs/<id>/job.json     the job; whoever changes it holds <root>/jobs/<id>/lock
    <root>/jobs/<id>/subjobs.json its subjobs, in order
    <root>/jobs/<id>/…            folders of the backend

Files are replaced as a whole, so that readers need no lock. A process that ends gives its locks back.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = "JEDI_GPI_HOME"
"""Environment variable with the folder of the repository; without it ~/.local/share/jedi-gpi."""


class NoSuchJob(LookupError):
    """The repository has no job of this number."""


@dataclass
class Stored:
    """One job with its subjobs, as they are written.

    job      spec (what the user set), status, submissions (how often), backend (what that noted), own (without subjobs)
    subjobs  for each: change (what differs from the master), status, and what the backend noted
    """

    job: dict[str, Any]
    subjobs: list[dict[str, Any]] = field(default_factory=list)


def default_root() -> Path:
    given = os.environ.get(HOME)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(given) if given else Path(base) / "jedi-gpi"


class JobStore:
    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()
        self.jobs = self.root / "jobs"
        self.jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._seen: dict[tuple[int, str], tuple[tuple[int, int, int], Any]] = {}
        self._held: dict[int, Stored] = {}

    def ids(self) -> list[int]:
        """The numbers of all jobs, ascending."""
        found = (int(path.name) for path in self.jobs.iterdir() if path.name.isdecimal())
        return sorted(number for number in found if (self.folder(number) / "job.json").exists())

    def folder(self, number: int) -> Path:
        return self.jobs / str(number)

    def add(self, job: dict[str, Any]) -> int:
        """Store a new job under the next number, which no job has had before."""
        with _locked(self.root / "lock"):
            counter = self.root / "next_id"
            number = int(counter.read_text()) if counter.exists() else 0
            number = max([number, *(int(p.name) + 1 for p in self.jobs.iterdir() if p.name.isdecimal())])
            write_json(counter, number + 1)
            self.folder(number).mkdir(mode=0o700)
            write_json(self.folder(number) / "job.json", job)
        return number

    def read(self, number: int) -> Stored:
        """The job as it stands. What is read is not to be changed. Raises NoSuchJob."""
        if number in self._held:
            return self._held[number]
        return Stored(self.job(number), self._json(number, "subjobs.json") or [])

    def job(self, number: int) -> dict[str, Any]:
        """The job without its subjobs. Raises NoSuchJob."""
        found = self._held[number].job if number in self._held else self._json(number, "job.json")
        if not isinstance(found, dict):
            raise NoSuchJob(f"there is no job {number}")
        return found

    def _json(self, number: int, name: str) -> Any:
        """What stands in a file of a job, None without it. Read again only after somebody has replaced it."""
        path = self.folder(number) / name
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        known = self._seen.get((number, name))
        if known is None or known[0] != mark:
            known = (mark, json.loads(path.read_text()))
            self._seen[number, name] = known
        return known[1]

    @contextlib.contextmanager
    def changing(self, number: int) -> Iterator[Stored]:
        """The job, locked against all others and to be changed in place: written at the end, unless an error ends it.

        Inside of another change of the same job by this process it is the same. Raises NoSuchJob.
        """
        if number in self._held:
            yield self._held[number]
            return
        if not self.folder(number).is_dir():
            raise NoSuchJob(f"there is no job {number}")
        with _locked(self.folder(number) / "lock"):
            stored = Stored(json.loads(json.dumps(self.job(number))), json.loads(json.dumps(self.read(number).subjobs)))
            before = json.dumps(stored.subjobs)
            self._held[number] = stored
            try:
                yield stored
                self.write(number, with_subjobs=json.dumps(stored.subjobs) != before)
            finally:
                del self._held[number]

    def write(self, number: int, *, with_subjobs: bool = True) -> None:
        """Write a job that is being changed, before its change ends."""
        stored, folder = self._held[number], self.folder(number)
        if with_subjobs:
            write_json(folder / "subjobs.json", stored.subjobs)
        write_json(folder / "job.json", stored.job)

    def remove(self, number: int) -> None:
        """Remove a job with all of its files. Its number is not used again."""
        with _locked(self.folder(number) / "lock"):
            (self.folder(number) / "job.json").unlink(missing_ok=True)
            shutil.rmtree(self.folder(number), ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of this file."""
    with contextlib.suppress(FileNotFoundError), path.open("a" if path.exists() else "r") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def write_json(path: Path, content: Any) -> None:
    """Replace a file as a whole: whoever reads it, and whatever is killed, finds the old content or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w") as opened:
            json.dump(content, opened, separators=(",", ":"))
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
