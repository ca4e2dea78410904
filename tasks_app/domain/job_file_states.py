"""The states of a file as one job has it, in the records of that job. In the books of its task a file has a `FileStatus`."""

from __future__ import annotations

from enum import StrEnum


class JobFileStatus(StrEnum):
    DEFINED = "defined"
    READY = "ready"
    FINISHED = "finished"
    FAILED = "failed"
    NO_OUTPUT = "nooutput"
    """An output that its job did not make, and need not have made."""
    LOST = "lost"
    AGAIN = "again"
    """An input that does not count for its job any more: another job processes it."""
    CORRUPTED = "corrupted"
    """A file with outputs of ranges of events that its merge job cannot read."""
    DELETED = "deleted"
    """A file with outputs of ranges that nobody needs any more."""
