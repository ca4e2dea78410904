"""At which queues the input of an analysis task can be read without moving it. Pure.

Analysis goes to its input (JEDI brokerage document, input data locality): to queues that have all datasets, on disk
rather than on tape; where none has all of them, to queues that have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from brokerage_app.vocabulary.needs import InputData, Replica

VP_SUFFIX: Final = "_VP_DISK"
"""Ends the names of virtual endpoints: their files are fetched when they are read."""


def is_virtual(endpoint: str) -> bool:
    return endpoint.endswith(VP_SUFFIX)


def without_virtual(inputs: Sequence[InputData]) -> tuple[InputData, ...]:
    """The same datasets without replicas at virtual endpoints."""
    return tuple(
        InputData(
            data.name,
            data.files,
            data.size_mb,
            data.is_primary,
            data.distributed,
            {name: replica for name, replica in data.replicas.items() if not is_virtual(name)},
        )
        if any(map(is_virtual, data.replicas))
        else data
        for data in inputs
    )


def is_whole(data: InputData, replica: Replica) -> bool:
    """Whether a replica has all files of a dataset."""
    return replica.complete or replica.files >= data.files


@dataclass(frozen=True, slots=True)
class QueuesWithInput:
    """Where input is, by names of queues.

    with_data   queues that may be chosen for what they have
    union       no queue has all datasets: `with_data` are those that have any, and weights go by size
    datasets    number of datasets with files
    on_disk     how many of them a queue has on disk; `on_tape`: how many on tape only
    real        queues that have some of it at endpoints that are not virtual
    whole       for each dataset that is whole at an endpoint which is not virtual, and not distributed: its name, and the
                queues that have it whole
    """

    with_data: frozenset[str] = frozenset()
    union: bool = False
    datasets: int = 0
    on_disk: Mapping[str, int] = field(default_factory=dict)
    on_tape: Mapping[str, int] = field(default_factory=dict)
    real: frozenset[str] = frozenset()
    whole: tuple[tuple[str, frozenset[str]], ...] = ()

    def lacks(self, queue: str) -> str:
        """The name of the first dataset of which a queue lacks files that are together elsewhere; "" is none."""
        return next((name for name, queues in self.whole if queue not in queues), "")


def queues_near(
    inputs: Iterable[InputData], readers: Mapping[str, Sequence[str]], *, virtual: bool = True
) -> QueuesWithInput:
    """Find the queues that are near the input.

    readers   for each endpoint the names of the queues that read from it
    virtual   whether the task may use virtual replicas; never of distributed datasets, nor where a real disk has all
    """
    datasets = [data for data in inputs if data.files > 0]
    found = [_of_dataset(data, readers, virtual=virtual) for data in datasets]
    if not found:
        return QueuesWithInput()
    disk = reduce(frozenset.intersection, (one.disk for one in found))
    with_data = disk or reduce(frozenset.intersection, (one.disk | one.tape for one in found))
    real = reduce(frozenset.union, (one.real for one in found))
    union = not with_data
    if union:
        with_data = (
            reduce(frozenset.union, (one.disk for one in found)) or reduce(frozenset.union, (one.tape for one in found))
        ) & real
    return QueuesWithInput(
        with_data,
        union and bool(with_data),
        len(found),
        _counted(one.disk for one in found),
        _counted(one.tape - one.disk for one in found),
        real,
        tuple((data.name, one.whole) for data, one in zip(datasets, found, strict=True) if one.whole is not None),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Queues near one dataset: with it on disk, on tape, at endpoints that are not virtual, and with all of it."""

    disk: frozenset[str]
    tape: frozenset[str]
    real: frozenset[str]
    whole: frozenset[str] | None


def _of_dataset(data: InputData, readers: Mapping[str, Sequence[str]], *, virtual: bool) -> _Place:
    whole = {name for name, replica in data.replicas.items() if is_whole(data, replica)}
    on_real_disk = any(not data.replicas[name].is_tape and not is_virtual(name) for name in whole)
    in_parts = data.distributed or not on_real_disk
    use_virtual = virtual and not data.distributed and not on_real_disk
    disk: set[str] = set()
    tape: set[str] = set()
    real: set[str] = set()
    for name, replica in data.replicas.items():
        if not (name in whole or (in_parts and replica.files > 0)) or (is_virtual(name) and not use_virtual):
            continue
        queues = readers.get(name, ())
        (tape if replica.is_tape else disk).update(queues)
        if not is_virtual(name):
            real.update(queues)
    have_all = frozenset(queue for name in whole for queue in readers.get(name, ()))
    asks_all = not data.distributed and not all(map(is_virtual, whole))
    return _Place(frozenset(disk), frozenset(tape), frozenset(real), have_all if asks_all else None)


def _counted(sets: Iterable[frozenset[str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for queues in sets:
        for queue in queues:
            found[queue] = found.get(queue, 0) + 1
    return found
