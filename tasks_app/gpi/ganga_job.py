"""Job and subjob: views of what is stored. Attributes of a new job are stored as they are set."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks_app.gpi import job_submission, job_tables
from tasks_app.gpi.backends import Piece
from tasks_app.gpi.components import from_json, own, to_json
from tasks_app.gpi.ganga_errors import JobError
from tasks_app.gpi.ganga_splitters import applied
from tasks_app.gpi.job_attributes import ALIASES, DEFAULTS, NOT_COPIED, check_name, checked
from tasks_app.gpi.job_store import NoSuchJob, Stored
from tasks_app.gpi.rules.job_ids import written_id
from tasks_app.gpi.rules.master_status import ACTIVE, COMPLETED, FINAL, NEW, STATUSES

log = logging.getLogger("gpi")


class _Common(ABC):
    """What a job and a subjob have in common. `id` counts from 0 in the repository, or in the master."""

    store: Any
    folder: Path

    @property
    @abstractmethod
    def fqid(self) -> tuple[int, ...]: ...

    @property
    def written_id(self) -> str:
        return written_id(self.fqid)

    @property
    @abstractmethod
    def outputdir(self) -> Path: ...

    def peek(self, name: str = "") -> None:
        """Show the names of the output files, or with a name its text. Raises JobError when it is not there."""
        paths = [path for path in sorted(self.outputdir.glob("*")) if path.is_file()] if self.outputdir.exists() else []
        if not name:
            sys.stdout.write("".join(f"{path.name} ({path.stat().st_size} bytes)\n" for path in paths))
            return
        found = next((path for path in paths if path.name == name), None)
        if found is None:
            raise JobError(
                f"job {self.written_id} has no output {name}: there are {', '.join(p.name for p in paths) or 'none'}"
            )
        sys.stdout.write(found.read_text(errors="replace"))

    def __repr__(self) -> str:
        return job_tables.text_table([self])

    def _repr_html_(self) -> str:
        return job_tables.html_table([self])


class Job(_Common):
    """A job: made new in the repository, or one of its jobs."""

    def __init__(self, template: Job | Subjob | None = None, *, registry: Any = None, **given: Any) -> None:
        if registry is None:
            from tasks_app.gpi.job_registry import jobs as registry
        given = {ALIASES.get(name, name): value for name, value in given.items()}
        for name in given:
            check_name(self, name)
        spec = template.spec() if template is not None else {}
        parts = {n: from_json(spec[n]) if n in spec else d() if isinstance(d, type) else d for n, d in DEFAULTS.items()}
        parts.update({name: checked(name, value) for name, value in given.items()})
        record = {name: to_json(value) for name, value in parts.items()}
        number = registry.store.add({"spec": record, "status": NEW, "submissions": 0})
        self._attach(registry, number)
        registry.adopt(self)

    def _attach(self, registry: Any, number: int) -> None:
        for name, value in (("_registry", registry), ("_number", number), ("_parts", {}), ("_spec", None)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_subjobs", {})

    @classmethod
    def stored(cls, registry: Any, number: int) -> Job:
        job: Job = object.__new__(cls)
        job._attach(registry, number)
        return job

    # What is stored

    @property
    def store(self) -> Any:
        return self._registry.store

    @property
    def folder(self) -> Path:  # type: ignore[override]
        return Path(self.store.folder(self._number))

    @property
    def id(self) -> int:
        return int(self._number)

    @property
    def fqid(self) -> tuple[int, ...]:
        return (self.id,)

    @property
    def parent(self) -> None:
        return None

    master = parent

    def spec(self) -> dict[str, Any]:
        return dict(self.store.job(self.id)["spec"])

    def _read(self) -> dict[str, Any]:
        """The parts as objects: made anew when somebody else has stored others."""
        spec = self.store.job(self.id)["spec"]
        if spec is not self._spec:
            if spec != {name: to_json(value) for name, value in self._parts.items()}:
                self._parts.clear()
                self._parts.update({name: from_json(value) for name, value in spec.items()})
                for value in self._parts.values():
                    own(value, self._save)
            object.__setattr__(self, "_spec", spec)
        return dict(self._parts)

    def _save(self) -> None:
        with self.store.changing(self.id) as stored:
            if stored.job["status"] != NEW:
                object.__setattr__(self, "_spec", None)  # what was set is forgotten
                raise JobError(f"job {self.id} is {stored.job['status']}: only a new job can be changed. Copy it")
            stored.job["spec"] = {name: to_json(value) for name, value in self._parts.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = ALIASES.get(name, name)
        if known not in DEFAULTS:
            check_name(self, known)
        found = self._read()[known]
        if name == "merger":
            return found[0] if found else None
        return found

    def keep(self) -> None:
        """Store what was changed inside of lists and dictionaries. Raises GangaTypeError for what does not belong there."""
        parts = self._read()
        for name, value in parts.items():
            checked(name, value)
        if self.store.job(self.id)["status"] == NEW and self.spec() != {n: to_json(v) for n, v in parts.items()}:
            for value in self._parts.values():
                own(value, self._save)
            self._save()

    def __setattr__(self, name: str, value: Any) -> None:
        name = ALIASES.get(name, name)
        check_name(self, name)
        value = checked(name, value)
        self._read()
        if name in ("name", "comment") and self.store.job(self.id)["status"] != NEW:
            with self.store.changing(self.id) as stored:
                stored.job["spec"][name] = value
            self._parts[name] = value
            return
        own(value, self._save)
        self._parts[name] = value
        self._save()

    # State

    @property
    def status(self) -> str:
        self._registry.look(self)
        found = self.store.job(self.id)
        return str(found["status"])

    def counts(self) -> dict[str, int]:
        """How many subjobs are in which state, as it was last known."""
        counted = self.store.job(self.id).get("counts", {})
        return {status: counted[status] for status in reversed(STATUSES) if status in counted}

    def active(self) -> int:
        """How many subjobs are at work, or 1 for a job without them that is."""
        return sum(entry["status"] in ACTIVE for entry in job_submission.entries(self.store.read(self.id)))

    @property
    def subjobs(self) -> Any:
        return self._registry.subjobs_of(self)

    def subjob(self, number: int) -> Subjob:
        """The object of one subjob, always the same."""
        if number not in self._subjobs:
            self._subjobs[number] = Subjob(self, number)
        return self._subjobs[number]

    @property
    def error(self) -> str:
        own_entry: dict[str, Any] = self.store.job(self.id).get("own", {})
        return str(own_entry.get("error", ""))

    @property
    def exit_code(self) -> int | None:
        found: int | None = self.store.job(self.id).get("own", {}).get("exit_code")
        return found

    # Acts

    def check(self) -> None:
        """Raises JobError for what cannot be submitted."""
        self.application.check(here=False)

    check_attribute = staticmethod(checked)

    def submit(self, keep_going: bool = False) -> bool:
        """Split and submit. False when `keep_going` and no subjob was taken: everything is then as before. Raises JobError."""
        self.keep()
        return job_submission.submit(self, keep_going=keep_going)

    def kill(self) -> bool:
        job_submission.kill(self)
        return True

    def resubmit(self) -> bool:
        """Submit again: of a master its failed subjobs."""
        self._registry.look(self)
        job_submission.resubmit(self)
        return True

    def copy(self) -> Job:
        self.keep()
        return Job(self, registry=self._registry)

    def remove(self) -> bool:
        """Remove the job, its subjobs and all of their files here; what is at work is killed first."""
        if self.status in ACTIVE:
            self.kill()
        self.store.remove(self.id)
        self._registry.forget(self.id)
        return True

    def outputs(self) -> list[Path]:
        """The files that it has made: what was merged, then those of each subjob."""
        self.fetch()
        merged = sorted(path for path in self.outputdir.glob("*") if path.is_file()) if self.outputdir.exists() else []
        return merged + [path for subjob in self.subjobs for path in subjob.outputs()] if self.subjobs else merged

    @property
    def outputdir(self) -> Path:
        if self.store.read(self.id).subjobs:
            return self.folder / "output"
        return self._piece_output(0)

    def _piece_output(self, number: int) -> Path:
        stored = self.store.read(self.id)
        piece = self.pieces(stored, [number])[0]
        if job_submission.entries(stored)[number]["status"] == COMPLETED:
            return Path(self.backend.outputs(self, [piece], self.folder)[number])
        return piece.folder / "output"

    def fetch(self) -> None:
        """Have the outputs of all completed subjobs here, in one go."""
        stored = self.store.read(self.id)
        done = [number for number, entry in enumerate(stored.subjobs) if entry["status"] == COMPLETED]
        if done:
            self.backend.outputs(self, self.pieces(stored, done), self.folder)

    def postprocess(self) -> None:
        job_submission.postprocess(self)

    def pieces(self, stored: Stored, numbers: Any = None) -> list[Piece]:
        """The subjobs as backends take them; the job itself where it has none."""
        parts = self._read()
        if not stored.subjobs:
            return [Piece(0, _Runs(parts), self.folder / "own", stored.job.get("own", {}).get("attempt", 1))]
        plain = {
            name: value for name, value in stored.job["spec"].items() if name not in ("splitter", "postprocessors")
        }
        chosen = range(len(stored.subjobs)) if numbers is None else numbers
        made = []
        for number in chosen:
            entry = stored.subjobs[number]
            runs = _Runs(parts, plain, entry["change"])
            made.append(Piece(number, runs, self.folder / "subjobs" / str(number), entry["attempt"]))
        return made


class _Runs:
    """What one subjob runs: parts of its master, and what differs, made when it is asked for."""

    def __init__(self, parts: Mapping[str, Any], spec: Mapping[str, Any] | None = None, change: Any = None) -> None:
        self._parts, self._spec, self.change = parts, spec, change or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        changed = {path: value for path, value in self.change.items() if path.partition(".")[0] == name}
        if self._spec is None or not changed:
            return self._parts[name]
        value = from_json(applied({name: self._spec[name]}, changed)[name])
        self.__dict__[name] = value
        return value


class Subjob(_Common):
    """One subjob. It cannot be changed, submitted or removed alone."""

    def __init__(self, master: Job, number: int) -> None:
        self.__dict__.update(master=master, id=number)

    def __setattr__(self, name: str, value: Any) -> None:
        raise JobError(f"subjob {self.written_id} cannot be changed: change its master's splitter, or copy the subjob")

    @property
    def parent(self) -> Job:
        return self.master

    @property
    def subjobs(self) -> Any:
        return []

    @property
    def fqid(self) -> tuple[int, ...]:
        return (self.master.id, self.id)

    @property
    def entry(self) -> dict[str, Any]:
        subjobs = self.master.store.read(self.master.id).subjobs
        if self.id >= len(subjobs):
            raise NoSuchJob(f"there is no subjob {self.written_id}")
        return dict(subjobs[self.id])

    @property
    def status(self) -> str:
        self.master._registry.look(self.master)
        return str(self.entry["status"])

    @property
    def error(self) -> str:
        return str(self.entry.get("error", ""))

    @property
    def exit_code(self) -> int | None:
        return self.entry.get("exit_code")

    @property
    def attempt(self) -> int:
        return int(self.entry["attempt"])

    def counts(self) -> dict[str, int]:
        return {}

    def spec(self) -> dict[str, Any]:
        """What a copy of it is made of: all that it runs, with its own files."""
        master = self.master.spec()
        plain = {name: value for name, value in master.items() if name not in NOT_COPIED}
        plain["inputfiles"] = master["inputfiles"]
        whole = {**plain, "inputdata": None, "splitter": None, "postprocessors": []}
        return applied(whole, self.entry["change"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = ALIASES.get(name, name)
        if known not in DEFAULTS:
            check_name(self, known)
        return from_json(self.spec()[known])

    def kill(self) -> bool:
        job_submission.kill(self.master, [self.id])
        return True

    def resubmit(self) -> bool:
        self.master._registry.look(self.master)
        job_submission.resubmit(self.master, [self.id])
        return True

    def submit(self, keep_going: bool = False) -> bool:
        log.warning("subjob %s cannot be submitted alone: resubmit it, or submit a copy", self.written_id)
        return False

    def remove(self) -> bool:
        log.warning("subjob %s cannot be removed alone: remove its master", self.written_id)
        return False

    def copy(self) -> Job:
        """A new top-level job."""
        return Job(self, registry=self.master._registry)

    @property
    def outputdir(self) -> Path:
        self.master._registry.look(self.master)
        return self.master._piece_output(self.id)

    def outputs(self) -> list[Path]:
        if self.status not in FINAL:
            return []
        return sorted(path for path in self.outputdir.glob("*") if path.is_file()) if self.outputdir.exists() else []
