"""What a backend does for a job: the interface, and the values that go to and fro."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tasks_app.gpi.components import Component


@dataclass(frozen=True)
class Piece:
    """One subjob, or a job without subjobs (number 0), for a backend.

    `job` has application, inputdata, inputfiles and outputfiles; `folder` is its own; `attempt` counts from 1.
    """

    number: int
    job: Any
    folder: Path
    attempt: int = 1


@dataclass(frozen=True)
class State:
    """What became of a subjob; `jobs` are the numbers of its jobs on the site, in order."""

    status: str
    exit_code: int | None = None
    error: str = ""
    jobs: tuple[int, ...] = ()


class Backend(Component, ABC):
    """`is_bulk`: the service takes all subjobs in one call; else they are submitted one by one."""

    is_bulk: ClassVar[bool] = True
    poll_s: ClassVar[float] = 0.0
    """How old what is known of a job may be, in seconds, before the backend is asked again."""

    @abstractmethod
    def files_of(self, data: Component) -> list[Any]:
        """The files of a dataset, in order. Raises JobError when this backend cannot read it."""

    @abstractmethod
    def states(self, job: Any, pieces: Sequence[Piece], place: Path) -> list[State]:
        """What became of the subjobs, in order."""

    @abstractmethod
    def kill(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        """End the subjobs. Raises JobError."""

    def check_resubmission(self, statuses: Sequence[str]) -> None:
        """Raises JobError when subjobs in these states cannot be submitted again."""

    @abstractmethod
    def resubmit(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        """Submit the subjobs once more. Raises JobError."""

    @abstractmethod
    def outputs(self, job: Any, pieces: Sequence[Piece], place: Path) -> dict[int, Path]:
        """The folders of outputs of subjobs that are completed, by number; what is elsewhere is fetched first."""
