"""`jobs`: all jobs of the repository, and slices of them and of subjobs, with acts on all at once."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tasks_app.gpi import job_submission, job_tables
from tasks_app.gpi.ganga_errors import GangaException, RegistryKeyError
from tasks_app.gpi.ganga_job import Job, Subjob
from tasks_app.gpi.job_store import JobStore, NoSuchJob
from tasks_app.gpi.rules.job_ids import JobKey, parse_id
from tasks_app.gpi.rules.master_status import STATUSES


class JobSlice(Sequence[Any]):
    """Some jobs, in order. `slice[0]` goes by place, `slice(4)` by id."""

    def __init__(self, found: Sequence[Any]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __getitem__(self, place: Any) -> Any:
        found = self._found[place]
        return JobSlice(found) if isinstance(place, slice) else found

    def __call__(self, key: JobKey) -> Any:
        """The job of an id in it. Raises RegistryKeyError."""
        wanted = parse_id(key)
        found = [job for job in self._found if wanted in ((job.id,), job.fqid)]
        if len(found) != 1:
            raise RegistryKeyError(f"there is no job {key} here")
        return found[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (JobSlice, list)) and list(self) == list(other)

    def ids(self) -> list[int]:
        return [job.id for job in self._found]

    def select(
        self,
        minid: int | None = None,
        maxid: int | None = None,
        *,
        ids: Sequence[int] | None = None,
        status: str | Sequence[str] | None = None,
        name: str | None = None,
        application: str | None = None,
        backend: str | None = None,
    ) -> JobSlice:
        """Those with an id in the range, one of the ids, in the state or one of the states, whose name fits the pattern."""
        states = None if status is None else {status} if isinstance(status, str) else set(status)
        if states and (unknown := states.difference(STATUSES)):
            raise ValueError(f"{min(unknown)} is no state of a job: there are {', '.join(STATUSES)}")
        chosen = set(ids) if ids is not None else None

        def fits(job: Any) -> bool:
            return (
                (minid is None or job.id >= minid)
                and (maxid is None or job.id <= maxid)
                and (chosen is None or job.id in chosen)
                and (name is None or fnmatch.fnmatchcase(job.name, name))
                and (application is None or type(job.application).__name__ == application)
                and (backend is None or type(job.backend).__name__ == backend)
                and (states is None or job.status in states)
            )

        return JobSlice([job for job in self._found if fits(job)])

    # Acts on all: subjobs of one master in one call

    def kill(self, keep_going: bool = True) -> bool:
        return self._each("kill", keep_going, job_submission.kill)

    def resubmit(self, keep_going: bool = True) -> bool:
        return self._each("resubmit", keep_going, job_submission.resubmit)

    def submit(self, keep_going: bool = True) -> bool:
        return self._each("submit", keep_going)

    def remove(self, keep_going: bool = True) -> bool:
        return self._each("remove", keep_going)

    def copy(self, keep_going: bool = True) -> JobSlice:
        return JobSlice([job.copy() for job in self._found])

    def _each(self, act: str, keep_going: bool, of_subjobs: Callable[..., None] | None = None) -> bool:
        """Whether it went well with all. Without `keep_going` the first error is raised."""
        well = True
        numbers: dict[Job, list[int]] = {}
        calls: list[Callable[[], Any]] = []
        for job in list(self._found):
            if isinstance(job, Subjob) and of_subjobs is not None:
                numbers.setdefault(job.master, []).append(job.id)
            else:
                calls.append(getattr(job, act))
        for master, some in numbers.items():
            calls.append(lambda master=master, some=some: of_subjobs(master, some) is None)  # type: ignore[misc]
        for call in calls:
            try:
                well = bool(call()) and well
            except GangaException as error:
                if not keep_going:
                    raise
                job_submission.log.warning("%s: %s", act, error)
                well = False
        return well

    def __repr__(self) -> str:
        return job_tables.text_table(self)

    def _repr_html_(self) -> str:
        return job_tables.html_table(self)


class JobRegistry(JobSlice):
    """All jobs of one repository, by id. `clock` counts seconds."""

    def __init__(
        self, root: str | os.PathLike[str] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root, self._clock = root, clock
        self._store: JobStore | None = None
        self._known: dict[int, Job] = {}
        self._looked: dict[int, float] = {}

    @property
    def store(self) -> JobStore:
        if self._store is None:
            self._store = JobStore(self._root)
        return self._store

    @property
    def _found(self) -> Sequence[Any]:  # type: ignore[override]
        return [self._job(number) for number in self.store.ids()]

    def _job(self, number: int) -> Job:
        if number not in self._known:
            self._known[number] = Job.stored(self, number)
        return self._known[number]

    def adopt(self, job: Job) -> None:
        self._known[job.id] = job

    def forget(self, number: int) -> None:
        self._known.pop(number, None)

    def look(self, job: Job, *, now: bool = False) -> None:
        """Ask the backend of a job that is at work, unless it was asked a moment ago."""
        moment = self._clock()
        if not now and moment - self._looked.get(job.id, -1e9) < job.backend.poll_s:
            return
        self._looked[job.id] = moment
        job_submission.monitor(job)

    def subjobs_of(self, job: Job) -> JobSlice:
        return JobSlice([job.subjob(number) for number in range(len(self.store.read(job.id).subjobs))])

    def __call__(self, key: JobKey) -> Any:
        """A job by its id, 4 or "4", a subjob by (4, 2) or "4.2", or the job of a name that only one has.

        Raises RegistryKeyError.
        """
        numbers = parse_id(key)
        if numbers is None:
            named = self.select(name=str(key))
            if len(named) != 1:
                raise RegistryKeyError(f"{len(named)} jobs have the name {key}")
            return named[0]
        try:
            self.store.job(numbers[0])
            job = self._job(numbers[0])
            if len(numbers) == 1:
                return job
            if numbers[1] < len(self.store.read(job.id).subjobs):
                return job.subjob(numbers[1])
        except NoSuchJob:
            pass
        raise RegistryKeyError(f"there is no job {'.'.join(map(str, numbers))}")


jobs = JobRegistry()
"""Those of this user's repository."""


def run_monitoring(registry: JobRegistry = jobs) -> None:
    """Ask the backends of all jobs that are at work."""
    for job in registry:
        registry.look(job, now=True)
