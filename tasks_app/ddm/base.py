"""What JEDI asks of a data management system. The local catalogue is one such system, Rucio another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    """A dataset as data management knows it. `open`: files may still be added."""

    name: str
    open: bool
    files: int


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


class UnknownDatasetError(LookupError):
    """Data management has no dataset of this name."""


class DataManagement(Protocol):
    """Calls may go over a network: none is made inside a transaction, but for the local catalogue's."""

    def describe(self, dataset: str) -> DatasetInfo:
        """Raises UnknownDatasetError."""
        ...

    def list_files(self, dataset: str, page: int = 50_000) -> Iterator[list[FileInfo]]:
        """The files of a dataset by name, each name once, in pages of at most `page`."""
        ...

    def create(self, datasets: Iterable[str], *, scope: str, task_id: int) -> None:
        """Register output datasets; those that exist are opened again."""
        ...

    def add(self, files: Iterable[NewFile]) -> None:
        """Add outputs to their datasets. A file that is there already is left as it is."""
        ...

    def close(self, datasets: Iterable[str]) -> None:
        """No more files will be added."""
        ...
