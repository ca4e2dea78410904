"""The lines in which jobs wait at a site: that of urgent ones, else that of their share, else that of their work queue. Pure.

A pilot is served line after line, in each the job of the highest priority first.
"""

from __future__ import annotations

from typing import Final

URGENT: Final = "urgent"
"""The processing type of jobs that go before all shares, and the line in which they wait.

Merge jobs have a processing type of their own: those of urgent tasks have the word among their special handling."""
LINE: Final = f"""CASE WHEN processingtype = '{URGENT}' OR strpos(specialhandling, '{URGENT}') > 0 THEN '{URGENT}'
            WHEN gshare IS NOT NULL THEN 'share:' || gshare
            ELSE 'queue:' || workqueue_id::text END"""
"""SQL: the line of a row of jobs, null without any. An index of activated jobs is over the same expression."""


def of_share(name: str) -> str:
    return f"share:{name}"


def of_queue(queue_id: int) -> str:
    return f"queue:{queue_id}"


def queue_of(line: str) -> int | None:
    """The work queue of a line; None for lines of others."""
    kind, _, number = line.partition(":")
    return int(number) if kind == "queue" else None


def of_job(processing_type: str | None, handling: str | None, share: str | None, queue_id: int | None) -> str | None:
    """The same as LINE."""
    if processing_type == URGENT or URGENT in (handling or ""):
        return URGENT
    if share is not None:
        return of_share(share)
    return None if queue_id is None else of_queue(queue_id)
