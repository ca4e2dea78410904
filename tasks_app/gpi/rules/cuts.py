"""How splitters cut: files into lists, and events into ranges. Pure.

Each function gives one entry for each subjob, in order: entry k is subjob k. Raises CutError for numbers that cut nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class CutError(ValueError):
    """The numbers of a splitter do not fit, or there is nothing to cut; the sentence says which."""


def in_slices(files: Sequence[T], size: int, most: int | None = None) -> list[list[T]]:
    """Lists of `size` files. `most` files are taken at most, and no list is cut by it: 7 of 12 files in fives are 10."""
    _at_least_one("files_per_subjob", size)
    end = len(files) if most is None or most < 0 else min(most, len(files))
    return [list(files[begin : begin + size]) for begin in range(0, end, size)]


def by_files(files: Sequence[T], size: int, most: int | None = None) -> list[list[T]]:
    """Lists of `size` files of the first `most`; the last may be shorter."""
    _at_least_one("filesPerJob", size)
    if most is not None:
        _at_least_one("maxFiles", most)
    taken = files if most is None else files[:most]
    return [list(taken[begin : begin + size]) for begin in range(0, len(taken), size)]


def by_number_of_jobs(files: Sequence[T], jobs: int) -> list[list[T]]:
    """So many lists: one file each where there are fewer files than jobs; equal ones where that goes; else all but the last
    are equal, and the last gets the rest, which may be nothing."""
    _at_least_one("nbjobs", jobs)
    if len(files) < jobs:
        return [[file] for file in files]
    if len(files) % jobs == 0:
        size = len(files) // jobs
        return [list(files[k * size : (k + 1) * size]) for k in range(jobs)]
    size = len(files) // (jobs - 1)
    return [list(files[k * size : (k + 1) * size]) for k in range(jobs - 1)] + [list(files[(jobs - 1) * size :])]


def by_number_of_files(files: Sequence[T], size: int) -> list[list[T]]:
    """Lists of `size` files; one file each where there are fewer than that."""
    _at_least_one("nbfiles", size)
    return by_files(files, size if len(files) >= size else 1)


def first_events(events: int, jobs: int, first: int = 0) -> list[int]:
    """The number of the first event of each of the jobs, which have so many events each and follow each other."""
    _at_least_one("eventsPerJob", events)
    _at_least_one("numberOfJobs", jobs)
    if first < 0:
        raise CutError(f"firstEventNumber must be at least 0, not {first}")
    return [first + k * events + 1 for k in range(jobs)]


def _at_least_one(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CutError(f"{name} must be a number of at least 1, not {value!r}")
