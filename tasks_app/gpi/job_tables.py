"""Tables of jobs: as text for terminals, as HTML for Jupyter. Values are hostile: names may hold anything."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

COLUMNS = ("fqid", "status", "name", "subjobs", "application", "backend", "comment")
WIDEST = 40
MOST_SHOWN = 200
"""Rows of a table; of more, the first and the last are shown, with the number of the others between them."""


def row_of(job: Any) -> tuple[str, ...]:
    values = (
        job.written_id,
        job.status,
        job.name,
        _progress(job),
        type(job.application).__name__,
        type(job.backend).__name__,
        job.comment,
    )
    return tuple(_plain(str(value)) for value in values)


def _progress(job: Any) -> str:
    """How many subjobs are in which state: "8 completed, 2 failed"."""
    return ", ".join(f"{count} {status}" for status, count in job.counts().items())


def _plain(text: str) -> str:
    """One line without control characters, which could write elsewhere on a terminal."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text)
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 1] + "…"


def _rows(jobs: Sequence[Any]) -> list[tuple[str, ...]]:
    if len(jobs) <= MOST_SHOWN:
        return [row_of(job) for job in jobs]
    half = MOST_SHOWN // 2
    left = (f"… {len(jobs) - 2 * half} more", *[""] * (len(COLUMNS) - 1))
    return [*map(row_of, jobs[:half]), left, *map(row_of, jobs[-half:])]


def text_table(jobs: Sequence[Any]) -> str:
    rows = [COLUMNS, *_rows(jobs)]
    shown = [n for n in range(len(COLUMNS)) if n < 2 or any(row[n] for row in rows[1:])]
    widths = [max(len(row[n]) for row in rows) for n in shown]
    lines = [" | ".join(row[n].ljust(w) for n, w in zip(shown, widths)).rstrip() for row in rows]  # noqa: B905
    return "\n".join([lines[0], "-+-".join("-" * w for w in widths), *lines[1:]])


def html_table(jobs: Sequence[Any]) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(v)}</td>" for v in row) + "</tr>" for row in _rows(jobs))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
