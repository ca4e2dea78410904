"""Splitters: each says, for subjob after subjob, what differs from the master."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tasks_app.gpi.components import Component
from tasks_app.gpi.ganga_errors import SplitterError
from tasks_app.gpi.job_parts import CatalogueDataset, GangaDataset
from tasks_app.gpi.rules import cuts

Change = dict[str, Any]
"""What one subjob has instead of its master: values by dotted attribute, such as application.args."""
MOST_SUBJOBS = 10_000


class Splitter(Component, ABC):
    @abstractmethod
    def split(self, job: Any) -> list[Change]:
        """One change for each subjob, in order. Raises SplitterError or CutError."""


class ArgSplitter(Splitter):
    """One subjob for each list of arguments. With `append` they follow those of the master."""

    fields: ClassVar[Mapping[str, Any]] = {"args": [], "append": False}

    def split(self, job: Any) -> list[Change]:
        if not hasattr(job.application, "args"):
            raise SplitterError(f"{type(job.application).__name__} has no arguments that ArgSplitter could change")
        wrong = next((one for one in self.args if not isinstance(one, list)), None)
        if wrong is not None:
            raise SplitterError(f"ArgSplitter takes a list of lists of arguments, and {wrong!r:.60} is no list")
        before = list(job.application.args) if self.append else []
        return [{"application.args": before + one} for one in self.args]


class GenericSplitter(Splitter):
    """One subjob for each value of an attribute, or of several attributes together."""

    fields: ClassVar[Mapping[str, Any]] = {"attribute": "", "values": [], "multi_attrs": {}}

    def split(self, job: Any) -> list[Change]:
        if bool(self.attribute) == bool(self.multi_attrs):
            raise SplitterError("GenericSplitter takes either attribute and values, or multi_attrs")
        columns = self.multi_attrs or {self.attribute: self.values}
        lengths = {len(values) for values in columns.values() if isinstance(values, (list, tuple))}
        if len(lengths) != 1 or not all(isinstance(values, (list, tuple)) for values in columns.values()):
            raise SplitterError("multi_attrs needs a list of values for each attribute, all of one length")
        names = [name[4:] if name.startswith("job.") else name for name in columns]
        return [dict(zip(names, row)) for row in zip(*columns.values())]  # noqa: B905 - of one length


class _OfFiles(Splitter):
    def split(self, job: Any) -> list[Change]:
        data = job.inputdata
        if data is None:
            raise SplitterError(f"{type(self).__name__} needs inputdata")
        files = job.backend.files_of(data)
        if not files:
            raise SplitterError(f"the inputdata has no files for {type(self).__name__}")
        return [{"inputdata": _some_of(data, some)} for some in self.cut(files)]

    @abstractmethod
    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        """The files of subjob after subjob. Raises CutError."""


def _some_of(data: Any, files: list[Any]) -> Component:
    if isinstance(data, CatalogueDataset):
        return CatalogueDataset(data.name, files)
    return GangaDataset(files)


class GangaDatasetSplitter(_OfFiles):
    fields: ClassVar[Mapping[str, Any]] = {"files_per_subjob": 5, "maxFiles": -1}

    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        return cuts.in_slices(files, self.files_per_subjob, self.maxFiles)


class SplitByFiles(_OfFiles):
    fields: ClassVar[Mapping[str, Any]] = {"filesPerJob": 10, "maxFiles": None}

    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        return cuts.by_files(files, self.filesPerJob, self.maxFiles)


class ND280SplitNbJobs(_OfFiles):
    fields: ClassVar[Mapping[str, Any]] = {"nbjobs": -1}

    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        return cuts.by_number_of_jobs(files, self.nbjobs)


class ND280SplitNbInputFiles(_OfFiles):
    fields: ClassVar[Mapping[str, Any]] = {"nbfiles": -1}

    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        return cuts.by_number_of_files(files, self.nbfiles)


class ND280SplitOneInputFile(_OfFiles):
    def cut(self, files: Sequence[Any]) -> list[list[Any]]:
        return cuts.by_files(files, 1)


class GaussSplitter(Splitter):
    """Ranges of events: FIRST_EVENT and NUM_EVENTS are in the environment of each subjob."""

    fields: ClassVar[Mapping[str, Any]] = {"eventsPerJob": 5, "numberOfJobs": 2, "firstEventNumber": 0}

    def split(self, job: Any) -> list[Change]:
        first = cuts.first_events(self.eventsPerJob, self.numberOfJobs, self.firstEventNumber)
        return [_with_env(job, FIRST_EVENT=one, NUM_EVENTS=self.eventsPerJob) for one in first]


class SeedSplitter(Splitter):
    """Numbered seeds: SEED is in the environment of each subjob, and numbers follow each other."""

    fields: ClassVar[Mapping[str, Any]] = {"numberOfJobs": 2, "firstSeed": 1}

    def split(self, job: Any) -> list[Change]:
        first = cuts.first_events(1, self.numberOfJobs)
        return [_with_env(job, SEED=self.firstSeed + one - 1) for one in first]


def _with_env(job: Any, **values: int) -> Change:
    if not hasattr(job.application, "env"):
        raise SplitterError(f"{type(job.application).__name__} has no environment for numbers")
    return {"application.env": {**job.application.env, **{name: str(value) for name, value in values.items()}}}


_WITHIN = ("application", "inputdata", "outputfiles", "name", "comment", "backend")


def changes_of(job: Any) -> list[Change]:
    """The changes of all subjobs of a job, checked: each fits the master. Raises SplitterError, and nothing has happened."""
    name = type(job.splitter).__name__
    try:
        changes = job.splitter.split(job)
    except cuts.CutError as error:
        raise SplitterError(f"{name}: {error}") from error
    if not changes:
        raise SplitterError(f"{name} makes no subjobs")
    if len(changes) > MOST_SUBJOBS:
        raise SplitterError(f"{name} makes {len(changes)} subjobs, and at most {MOST_SUBJOBS} are allowed")
    for number, change in enumerate(changes):
        for path, value in change.items():
            try:
                _check(job, path, value)
            except (AttributeError, TypeError) as error:
                raise SplitterError(f"subjob {number}: {error}") from error
    return changes


def _check(job: Any, path: str, value: Any) -> None:
    first, _, rest = path.partition(".")
    if first not in _WITHIN:
        raise SplitterError(f"{path} cannot differ between subjobs: {', '.join(_WITHIN[:-1])} can")
    if first == "backend" and not rest:
        if type(value) is not type(job.backend):
            here, there = type(job.backend).__name__, type(value).__name__
            raise SplitterError(f"all subjobs use one backend: the master has {here}, and one has {there}")
        return
    if not rest:
        job.check_attribute(first, value)
        return
    part = getattr(job, first)
    names = rest.split(".")
    for name in names[:-1]:
        part = getattr(part, name)
    if not isinstance(part, Component):
        raise SplitterError(f"{path} is no attribute of the job")
    if names[-1] not in part.fields:
        raise SplitterError(f"{type(part).__name__} has no attribute {names[-1]}, which {path} names")
    part.checked(names[-1], value)


def applied(spec: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a subjob: that of its master with the change, which is JSON as well."""
    made = dict(spec)
    for path, value in change.items():
        names = path.split(".")
        part = made
        for name in names[:-1]:
            part[name] = dict(part.get(name) or {})
            part = part[name]
        part[names[-1]] = value
    return made
