"""What JEDI asks of a data management system. The local catalogue is one such system, Rucio another."""

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


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset or container as data management knows it. `open`: files, or datasets with files, may still be added.

    `made_by_task`: the task for which it was registered; None when a user did that.
    """

    name: str
    open: bool
    files: int
    made_by_task: int | None = None


class NewFile(NamedTuple):
    """An output that a job has stored."""

    dataset: str
    lfn: str
    scope: str
    guid: str
    size: int
    adler32: str
    events: int | None
    endpoint: str
    surl: str


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


class UnknownDatasetError(LookupError):
    """Data management has no dataset of this name."""


class DataManagement(Protocol):
    """Calls may go over a network: none is made inside a transaction, but for the local catalogue's."""

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

    def create(self, datasets: Iterable[str], *, scope: str, task_id: int) -> None:
        """Register output datasets; those that exist are opened again."""
        ...

    def add(self, files: Iterable[NewFile]) -> None:
        """Add outputs to their datasets. A file that is there already is left as it is."""
        ...

    def close(self, datasets: Iterable[str]) -> None:
        """No more files will be added. A container that has no open dataset left is closed too."""
        ...

    def add_to_container(self, container: str, datasets: Iterable[str], *, task_id: int | None = None) -> None:
        """Put datasets into a container, which is registered if it is new. Those that are in it already stay."""
        ...

    def remove(self, dataset: str, lfns: Iterable[str]) -> int:
        """Take files out of a dataset, with their replicas where nothing else names them. Returns how many there were."""
        ...

    def delete(self, datasets: Iterable[str]) -> int:
        """Delete datasets, or containers without their datasets, with their files. Unknown names are left out.

        Returns how many there were.
        """
        ...

    def keep_until(self, datasets: Iterable[str], end: datetime | None) -> None:
        """From `end` on the datasets may be deleted; None: never by themselves."""
        ...

    def disk_usage(self, scopes: Iterable[str]) -> dict[str, int]:
        """Bytes that the files of each scope take, all datasets together. Scopes without files are left out."""
        ...
