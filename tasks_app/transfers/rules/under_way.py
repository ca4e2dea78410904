"""What is said of outputs that wait to be gathered. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tasks_app.domain.words import plural, size


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Where open rules bring outputs of a task or a job, and the bytes of files that have not arrived."""

    places: tuple[str, ...] = ()
    bytes_left: int = 0

    def of_jobs(self, jobs: int) -> str:
        """That so many jobs are `transferring`."""
        wait = "waits for its" if jobs == 1 else "wait for their"
        return f"{plural(jobs, 'job')} {wait} outputs to be brought to {self.where}"

    @property
    def where(self) -> str:
        """The places, and what is left."""
        places = " and ".join(self.places) if len(self.places) < 3 else f"{len(self.places)} storages"
        left = f", {size(self.bytes_left)} left" if self.bytes_left else ""
        return (places or "their destination") + left


NOTHING: Final = UnderWay()
