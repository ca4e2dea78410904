"""How much of a task's input lies where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from brokerage_app.vocabulary.needs import InputData, Replica
from brokerage_app.vocabulary.snapshot import Endpoint

PERCENT: Final = 100
SHOWN: Final = 3


class Here(NamedTuple):
    """Input at one place: on disk, and with what is on tape there. Sizes in MB."""

    disk_mb: float = 0.0
    disk_files: int = 0
    any_mb: float = 0.0
    any_files: int = 0


NOTHING: Final = Here()


class Inputs:
    """The inputs of one task, arranged by the endpoints that have them."""

    __slots__ = ("_by_endpoint", "datasets", "files", "size_mb")

    def __init__(self, datasets: Sequence[InputData]) -> None:
        self.datasets = tuple(datasets)
        self.size_mb = float(sum(data.size_mb for data in datasets))
        self.files = sum(data.files for data in datasets)
        self._by_endpoint: dict[str, list[tuple[int, Replica]]] = {}
        for number, data in enumerate(datasets):
            for endpoint, replica in data.replicas.items():
                self._by_endpoint.setdefault(endpoint, []).append((number, replica))

    def at(self, endpoints: Iterable[str]) -> Here:
        """What a place with these endpoints has.

        Replicas of one dataset at several of them are not added up, since they may be the same files: the largest counts.
        """
        found = [one for endpoint in endpoints for one in self._by_endpoint.get(endpoint, ())]
        if not found:
            return NOTHING
        on_disk: dict[int, tuple[float, int]] = {}
        at_all: dict[int, tuple[float, int]] = {}
        for number, replica in found:
            data = self.datasets[number]
            if replica.complete:
                has = (float(data.size_mb), data.files)
            else:
                has = (min(float(replica.size_mb), data.size_mb), min(replica.files, data.files))
            at_all[number] = max(at_all.get(number, has), has)
            if not replica.is_tape:
                on_disk[number] = max(on_disk.get(number, has), has)
        return Here(
            sum(size for size, _ in on_disk.values()),
            sum(files for _, files in on_disk.values()),
            sum(size for size, _ in at_all.values()),
            sum(files for _, files in at_all.values()),
        )

    def complete_at(self, data: InputData, *, most_missing: int, least_percent: float) -> list[str]:
        """Endpoints whose replica of a dataset counts as complete, by name."""
        return sorted(
            endpoint
            for endpoint, replica in data.replicas.items()
            if is_complete(data, replica, most_missing=most_missing, least_percent=least_percent)
        )


def input_in_words(datasets: Sequence[InputData], here: Here) -> str:
    """What a weight for input is called: of a queue that has some of it, or of one to which all comes from elsewhere."""
    if here.any_files:
        return "input there"
    places = sorted({endpoint for data in datasets for endpoint in data.replicas})
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"input comes from {', '.join(places[:SHOWN])}{more}" if places else "input comes from elsewhere"


def is_complete(data: InputData, replica: Replica, *, most_missing: int, least_percent: float) -> bool:
    """Whether a replica counts as complete: it is, or few files are missing, or most are there."""
    if replica.complete or replica.files >= data.files or data.files - replica.files <= most_missing:
        return True
    return replica.files * PERCENT >= least_percent * data.files


class Reach(NamedTuple):
    """Complete replicas of one dataset: names of endpoints that have one, that can be read, that can send it away."""

    data: InputData
    complete: Sequence[str]
    readable: Sequence[str]
    sending: Sequence[str]


def reach(
    inputs: Inputs, endpoint: Callable[[str], Endpoint | None], *, most_missing: int, least_percent: float
) -> list[Reach]:
    """How the datasets can be had that lie in one place; distributed ones are left out.

    An endpoint that nobody has described counts as up.
    """
    found = []
    for data in inputs.datasets:
        if data.distributed or not data.files:
            continue
        complete = inputs.complete_at(data, most_missing=most_missing, least_percent=least_percent)
        sending = [name for name in complete if _is_up(endpoint(name), "read_wan")]
        readable = [name for name in complete if name in sending or _is_up(endpoint(name), "read_lan")]
        found.append(Reach(data, complete, readable, sending))
    return found


def _is_up(endpoint: Endpoint | None, activity: str) -> bool:
    return endpoint is None or endpoint.is_up(activity)
