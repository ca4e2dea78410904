"""Several processes at once, each with a connection of its own, that do the same thing for a fixed time."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

from django.db import connections

Step = Callable[[], int]
"""Does one thing and returns how many it did; 0 is the end."""
BUCKET_S = 0.5


class CrowdError(RuntimeError):
    """One of the processes failed; its traceback is in the text."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a crowd did: things, seconds until the last of them, and things in each half second."""

    count: int
    seconds: float
    buckets: list[int]

    @property
    def rate(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0

    def rate_between(self, first_s: float, last_s: float) -> float:
        """Things a second between two moments, in whole half seconds."""
        chosen = self.buckets[int(first_s / BUCKET_S) : int(last_s / BUCKET_S)]
        return sum(chosen) / (len(chosen) * BUCKET_S) if chosen else 0.0


def crowd(number: int, make: Callable[[int], Step], seconds: float) -> Done:
    """Run `make(index)` in that many processes, and then what it returned, again and again. Raises CrowdError."""
    connections.close_all()  # a connection cannot be shared with a child
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(number)
    pipes, children = [], []
    for index in range(number):
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_member, args=(index, make, seconds, barrier, theirs), daemon=True)
        child.start()
        theirs.close()
        pipes.append(ours)
        children.append(child)
    answers = [_answer(pipe) for pipe in pipes]
    for child in children:
        child.join()
    failed = [answer for answer in answers if isinstance(answer, str)]
    if failed:
        raise CrowdError(failed[0])
    began = min(answer[0] for answer in answers)
    last = max(answer[1] for answer in answers)
    buckets = [sum(column) for column in zip(*(answer[2] for answer in answers), strict=True)]
    return Done(sum(buckets), last - began, buckets)


def _answer(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "a process ended without an answer"


def _member(index: int, make: Callable[[int], Step], seconds: float, barrier: Barrier, pipe: Connection) -> None:
    try:
        step = make(index)
        barrier.wait(60)
        pipe.send(_loop(step, seconds))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent has to know
        barrier.abort()
        pipe.send(traceback.format_exc())
    finally:
        connections.close_all()


def _loop(step: Step, seconds: float) -> tuple[float, float, list[int]]:
    """When it began, when the last thing was done, and things in each half second."""
    buckets = [0] * (int(seconds / BUCKET_S) + 2)
    began = last = now = time.monotonic()
    while now - began < seconds:
        did = step()
        now = time.monotonic()
        if not did:
            break
        last = now
        # A step that ends late counts in the last bucket.
        buckets[min(int((now - began) / BUCKET_S), len(buckets) - 1)] += did
    return began, last, buckets
