"""Kinds and states of transfers: rules, the requests of their files, and replicas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class TransferKind(StrEnum):
    """Why data moves: from tape to disk, to where a job reads it, or to where the outputs of a task are gathered."""

    STAGE = "stage"
    COPY = "copy"
    GATHER = "gather"


KIND_WORDS: Final[Mapping[TransferKind, str]] = {
    TransferKind.STAGE: "staging from tape",
    TransferKind.COPY: "copying of inputs",
    TransferKind.GATHER: "gathering of outputs",
}


class TransferStatus(StrEnum):
    """Of a rule, and of the request for one of its files."""

    QUEUED = "queued"
    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


S = TransferStatus
_ENDS = frozenset({S.DONE, S.FAILED, S.CANCELLED})

TRANSFER_MOVES: Final[Mapping[TransferStatus, frozenset[TransferStatus]]] = {
    S.QUEUED: _ENDS | {S.ACTIVE},
    S.ACTIVE: _ENDS | {S.QUEUED},
    S.DONE: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELLED: frozenset(),
}
TRANSFER_OPEN: Final = (S.QUEUED, S.ACTIVE)


class ReplicaStatus(StrEnum):
    """Of a file at an endpoint. `tape`: it has to be staged before it can be read; `copying`: a request brings it there."""

    AVAILABLE = "available"
    TAPE = "tape"
    COPYING = "copying"
    BAD = "bad"


KEPT_REPLICA_STATES: Final = (ReplicaStatus.AVAILABLE, ReplicaStatus.BAD)
"""Those that rows have; that a file is on tape says its endpoint, and that it is being copied its request."""
