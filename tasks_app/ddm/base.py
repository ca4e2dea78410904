"""The interface to a data management system. The local catalogue is one such system, Rucio another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol


class FileInfo(NamedTuple):
    """One file of a dataset. Size in bytes; checksum as `ad:<adler32>`; `surl` where a pilot of this site reads it."""

    lfn: str
    scope: str
    guid: str
    size: int
    checksum: str
    events: int | None = None
    lumi_block: int | None = None
    surl: str | None = None


class Named(NamedTuple):
    """A file that is to go into a dataset. Size in bytes, adler32 in hexadecimal."""

    dataset: str
    scope: str
    lfn: str
    size: int
    adler32: str


class Content(NamedTuple):
    """A file that a dataset has. Size in bytes, adler32 in hexadecimal."""

    dataset: str
    size: int
    adler32: str


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset or container as data management knows it. `open`: files, or datasets with files, may still be added.

    `made_by_task`: the task for which it was registered; None when a user did that. `owner`: the user to whom it
    belongs; empty when that is the site.
    """

    name: str
    open: bool
    files: int
    made_by_task: int | None = None
    owner: str = ""


class NewFile(NamedTuple):
    """An output that a job has stored. `owner` is that of the job's task."""

    dataset: str
    lfn: str
    scope: str
    guid: str
    size: int
    adler32: str
    events: int | None
    endpoint: str
    surl: str
    owner: str


class Held(NamedTuple):
    """What a storage endpoint has of a dataset. `size` in bytes."""

    endpoint: str
    files: int
    size: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Places:
    """A dataset as a whole, and what is where. `size` in bytes."""

    files: int = 0
    size: int = 0
    held: tuple[Held, ...] = ()


class Maker(NamedTuple):
    """For whom data management writes: the owner of a task, and the task; without a task, a user who registers data.

    A dataset belongs to its owner, and to the task that made it first. Other tasks of the owner may put files into it;
    only that task ends it.
    """

    owner: str
    task_id: int | None = None

    @property
    def is_site(self) -> bool:
        return self == SITE

    def may_write(self, owner: str) -> bool:
        """Whether this one may open a dataset of that owner, put files into it and take files out."""
        return self.is_site or self.owner == owner


SITE = Maker("")
"""The site itself: who runs it, and its watchdogs. They may do everything; what they register belongs to nobody else."""


class UnknownDatasetError(LookupError):
    """Data management has no dataset of this name."""


class ForeignDatasetError(PermissionError):
    """A dataset of this name exists and belongs to somebody else; the sentence says to whom."""

    def __init__(self, name: str, owner: str, task_id: int | None) -> None:
        whose = f"belongs to {owner}" if owner else "belongs to this site"
        super().__init__(f"the dataset {name} exists and {whose}" + (f" (task {task_id} made it)" if task_id else ""))


class DataManagement(Protocol):
    """Calls may go over a network: none is made inside a transaction, but for the local catalogue's.

    Whatever writes says for whom: what belongs to others stays as it is.
    """

    def describe(self, dataset: str) -> DatasetInfo:
        """Raises UnknownDatasetError."""
        ...

    def list_files(self, dataset: str, page: int = 50_000, *, all_attempts: bool = False) -> Iterator[list[FileInfo]]:
        """The files of a dataset by name, each name once, in pages of at most `page`; of a container, dataset by dataset.

        Of files that were made again under the same name with the number of an attempt behind it, only the last one,
        unless `all_attempts`.
        """
        ...

    def replicas(self, datasets: Iterable[str]) -> dict[str, Places]:
        """Where datasets are; of a container, where its datasets are. A name that is not known has no files and no place."""
        ...

    def constituents(self, name: str) -> list[str]:
        """Datasets of a container by name; of a dataset itself. Raises UnknownDatasetError."""
        ...

    def unknown(self, names: Iterable[str], *, user: str) -> dict[str, str]:
        """Those of these datasets and containers that do not exist for certain, each with the name that the user probably
        meant; "" when none is near.

        A system that cannot say so at once returns none: such an input is looked up when the task is fed.
        """
        ...

    def hollow(self, names: Iterable[str]) -> set[str]:
        """Those of these datasets and containers that are known, have no file, and of whose datasets none may still get one.

        A system that cannot say so at once returns none: the input is looked at when the task is fed.
        """
        ...

    def lacking(
        self, datasets: Iterable[str], lfns: Iterable[str], *, complete: bool = False, hints: bool = True
    ) -> dict[str, str]:
        """Those of these names that no file of the datasets and containers has for certain, each with the name that was
        probably meant; "" when none is near, and without `hints`. With `complete` none while a dataset is unknown or may
        still get files.

        A system that cannot say so at once returns none: the files are looked for when the task is fed.
        """
        ...

    def names_in(self, datasets: Iterable[str], most: int) -> list[list[str]] | None:
        """Names of all files, dataset by dataset, of these datasets and of those in these containers; empty ones are left out.

        None while one is unknown or may still get files, when there are more than `most`, and when the system cannot say so
        at once.
        """
        ...

    def short_of_events(self, datasets: Iterable[str], wanted: int | None) -> tuple[str, int | None] | None:
        """A file of these datasets and containers, with its events, that has fewer than `wanted`, or, without a number, of
        which none are known. Looks at some thousands of files at most.

        None without such a file, and when the system cannot say so at once: it is looked at when the task is fed.
        """
        ...

    def matching(self, pattern: str, most: int) -> list[str]:
        """Some datasets and containers whose names match a pattern with `*`, `?` and `[...]`, for a hint to a user.

        None when the pattern begins with a wildcard, or when the system cannot say so at once.
        """
        ...

    def database_releases(self) -> list[str]:
        """The datasets with a file that hold a release of the conditions database."""
        ...

    def others_of_these_names(self, files: Iterable[Named]) -> dict[tuple[str, str], Content]:
        """Those scopes and names that stand for another content in another dataset, with it.

        A scope and a name are one file, whatever datasets it is in.
        """
        ...

    def create(self, datasets: Iterable[str], *, scope: str, by: Maker) -> None:
        """Register output datasets; those of the same owner that exist are opened again.

        What the task itself had made is kept for ever again. Raises ForeignDatasetError, and then registers nothing.
        """
        ...

    def add(self, files: Iterable[NewFile]) -> None:
        """Add outputs to the datasets of their owners. A file that is there already is left as it is."""
        ...

    def close(self, datasets: Iterable[str], *, by: Maker) -> None:
        """No more files will be added to those of the owner. A container without an open dataset is closed too."""
        ...

    def add_to_container(self, container: str, datasets: Iterable[str], *, by: Maker) -> None:
        """Put datasets into a container, which is registered if it is new. Those that are in it already stay.

        Raises ForeignDatasetError when the container is somebody else's.
        """
        ...

    def remove(self, dataset: str, lfns: Iterable[str], *, by: Maker) -> int:
        """Take files out of a dataset of the owner, with their replicas where nothing else names them.

        Returns how many there were.
        """
        ...

    def delete(self, datasets: Iterable[str], *, by: Maker) -> int:
        """Delete datasets, or containers without their datasets, with their files. Unknown names are left out, and so is
        what the task has not made.

        Returns how many there were.
        """
        ...

    def keep_until(self, datasets: Iterable[str], end: datetime | None, *, by: Maker) -> None:
        """From `end` on the datasets that the task has made may be deleted; None: never by themselves.

        Others of its owner, into which it has put files, are kept until then if they were to go earlier.
        """
        ...

    def disk_usage(self, scopes: Iterable[str]) -> dict[str, int]:
        """Bytes that the files of each scope take, all datasets together. Scopes without files are left out."""
        ...
