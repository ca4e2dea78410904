"""bench pages: the time of every page of the dashboard in the server, from the request to the last byte, and exports.

It asks Django in this process, as an operator, with no network in between. The database is the one that is there, or with
--tasks, --jobs or --files a new one that is filled and thrown away.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil
import psycopg
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from tasks_app.labs.bench.measuring import Target
from tasks_app.labs.bench.page_addresses import Address, addresses
from tasks_app.models import Task

MOST_MS = 300.0
MOST_QUERIES = 12
EXPORT_ROWS = 50_000
"""Rows after which an export is broken off: its rate and its memory have shown by then."""
ROWS_OF_RAW = 50
FORMS_ONLY = 405
"""What an address answers that is for sending forms to."""


class EmptyDatabaseError(RuntimeError):
    """The database has no tasks, so that its pages would be empty."""


@dataclass(slots=True)
class Statements:
    """Statements that went to the database, with their times in ms."""

    times: list[tuple[float, str]] = field(default_factory=list)

    @property
    def slowest(self) -> tuple[float, str]:
        return max(self.times, default=(0.0, ""))


@contextmanager
def watched() -> Iterator[Statements]:
    """Count the statements of this process, also those that pass Django by."""
    seen = Statements()
    execute = psycopg.Cursor.execute

    def counted(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(cursor, query, *args, **kwargs)
        finally:
            seen.times.append(((time.perf_counter() - began) * 1000, str(query)))

    # Here all ways meet: Django's cursors and those of the hot paths.
    psycopg.Cursor.execute = counted  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Measured:
    """One page: ms of each round, of which this process worked `cpu_ms`, and the statements of the last round."""

    address: Address
    ms: Sequence[float]
    cpu_ms: Sequence[float]
    queries: int
    slowest_ms: float
    slowest: str
    size: int

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.address.path,
            "name": self.address.name,
            "is_list": self.address.is_list,
            "median_ms": round(median(self.ms), 1),
            "worst_ms": round(max(self.ms), 1),
            "cpu_ms": round(median(self.cpu_ms), 1),
            "queries": self.queries,
            "slowest_query_ms": round(self.slowest_ms, 1),
            "slowest_query": " ".join(self.slowest.split())[:300],
            "bytes": self.size,
        }


@dataclass(frozen=True, slots=True)
class Exported:
    """A list that was streamed: ms to its first byte, rows a second, and MB that this process grew by meanwhile."""

    path: str
    first_ms: float
    rows: int
    rows_per_s: float
    grown_mb: float

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "first_ms": round(self.first_ms, 1),
            "rows": self.rows,
            "rows_per_s": round(self.rows_per_s),
            "grown_mb": round(self.grown_mb, 1),
        }


@dataclass(frozen=True, slots=True)
class PagesResult:
    pages: Sequence[Measured]
    exports: Sequence[Exported]
    raw: float
    sizes: Mapping[str, int]

    @property
    def lists(self) -> list[Measured]:
        return [page for page in self.pages if page.address.is_list]

    @property
    def median_ms(self) -> float:
        return median(median(page.ms) for page in self.lists)

    @property
    def worst_ms(self) -> float:
        """The median of the slowest list: one round that something else disturbed says nothing of a page."""
        return max(median(page.ms) for page in self.lists)

    @property
    def worst_queries(self) -> int:
        return max(page.queries for page in self.lists)

    @property
    def targets(self) -> list[Target]:
        return [
            Target("ms of the slowest list", self.worst_ms, MOST_MS, 150.0, at_most=True),
            Target("statements of a list at most", self.worst_queries, MOST_QUERIES, at_most=True),
            Target("ms of the slowest page", max(median(p.ms) for p in self.pages), MOST_MS, 150.0, at_most=True),
            Target("statements of a page at most", max(p.queries for p in self.pages), MOST_QUERIES, at_most=True),
        ]

    def lines(self) -> list[str]:
        found = [f"{'page':<58} {'median ms':>9} {'worst':>7} {'of CPU':>7} {'queries':>7} {'slowest':>8}"]
        for page in sorted(self.pages, key=lambda p: -median(p.ms)):
            times = f"{median(page.ms):>9.1f} {max(page.ms):>7.1f} {median(page.cpu_ms):>7.1f}"
            times += f" {page.queries:>7} {page.slowest_ms:>8.1f}"
            found.append(f"{page.address.name[:58]:<58} {times}")
        for export in self.exports:
            found.append(
                f"{export.path}: first byte after {export.first_ms:.0f} ms, {export.rows_per_s:,.0f} rows/s over "
                f"{export.rows:,} rows, {export.grown_mb:.1f} MB more memory"
            )
        found.append(
            f"lists: median {self.median_ms:.1f} ms, worst {self.worst_ms:.1f} ms, {self.worst_queries} queries at most"
        )
        found.append(f"raw: {self.raw:,.0f} statements/s of {ROWS_OF_RAW} jobs by primary key")
        return [*found, *(target.sentence() for target in self.targets)]

    def as_json(self) -> dict[str, Any]:
        return {
            "benchmark": "pages",
            "median_ms": round(self.median_ms, 1),
            "worst_ms": round(self.worst_ms, 1),
            "worst_queries": self.worst_queries,
            "raw": round(self.raw, 1),
            "ratio": round(1000 / self.median_ms / self.raw, 5) if self.raw else 0.0,
            "sizes": dict(self.sizes),
            "pages": [page.as_json() for page in self.pages],
            "exports": [export.as_json() for export in self.exports],
            "targets": [
                {"name": t.name, "value": round(t.value, 4), "need": t.need, "aim": t.aim, "met": t.is_met}
                for t in self.targets
            ],
        }


def run(sizes: Mapping[str, int | None], rounds: int, say: Callable[[str], None]) -> PagesResult:
    """Measure all pages. With sizes, the database is filled first. Raises EmptyDatabaseError when there are no tasks."""
    if any(sizes.values()):
        tasks = sizes.get("tasks") or 20_000
        wanted = {"tasks": tasks, "jobs": sizes.get("jobs") or 50 * tasks, "files": sizes.get("files") or 100 * tasks}
        began = time.monotonic()
        call_command("make_grid", **wanted, verbosity=0)
        say(f"filled with {wanted['tasks']:,} tasks in {time.monotonic() - began:.0f} s")
    if not Task.objects.exists():
        raise EmptyDatabaseError("there are no tasks to be shown: say --tasks, or fill the database with make_grid")
    with _operator() as client:
        asked = (_measured(client, address, rounds) for address in addresses())
        found = [page for page in asked if page is not None]
        exports = [_exported(client, path) for path in _exports()]
    return PagesResult(found, exports, _raw(rounds), _sizes())


@contextmanager
def _operator() -> Iterator[Client]:
    """An account that may see and do everything, for as long as the block lasts."""
    user = get_user_model().objects.create_superuser(f"bench-{secrets.token_hex(4)}", password=None)
    client = Client(headers={"host": "localhost"})
    try:
        client.force_login(user)
        yield client
        client.session.delete()
    finally:
        user.delete()


def _measured(client: Client, address: Address, rounds: int) -> Measured | None:
    """None for an address that is only for sending forms to."""
    # What is loaded once for all requests is no part of a page's time.
    if _get(client, address.path) is None:
        return None
    times: list[float] = []
    worked: list[float] = []
    size: int | None = 0
    for _ in range(rounds):
        with watched() as seen:
            began, cpu = time.perf_counter(), time.process_time()
            size = _get(client, address.path)
            times.append((time.perf_counter() - began) * 1000)
            worked.append((time.process_time() - cpu) * 1000)
    slowest_ms, slowest = seen.slowest
    return Measured(address, times, worked, len(seen.times), slowest_ms, slowest, size or 0)


def _get(client: Client, path: str) -> int | None:
    """Bytes of the answer; None where only forms are taken. Raises RuntimeError when it is another error."""
    try:
        answer: Any = client.get(path)
    except Exception as exc:
        raise RuntimeError(f"{path} failed: {exc!r}") from exc
    if answer.status_code == FORMS_ONLY:
        return None
    if answer.status_code >= 400:
        raise RuntimeError(f"{path} answered {answer.status_code}")
    pieces: Iterator[bytes] = answer.streaming_content if answer.streaming else iter((answer.content,))
    return sum(len(piece) for piece in pieces)


def _exports() -> list[str]:
    return [f"{reverse(name)}?format=csv" for name in ("api-v2:tasks", "api-v2:jobs")]


def _exported(client: Client, path: str) -> Exported:
    me = psutil.Process(os.getpid())
    before = highest = me.memory_info().rss
    began = time.perf_counter()
    answer: Any = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path} answered {answer.status_code}")
    rows, first = 0, 0.0
    for piece in answer.streaming_content:
        first = first or time.perf_counter() - began
        rows += piece.count(b"\n")
        highest = max(highest, me.memory_info().rss)
        if rows > EXPORT_ROWS:
            break
    seconds = time.perf_counter() - began
    answer.close()
    return Exported(path, first * 1000, rows, rows / seconds, (highest - before) / 2**20)


def _raw(rounds: int) -> float:
    """Statements a second that read some jobs by their keys: PostgreSQL's own rate in the same run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pandaid FROM jobs ORDER BY pandaid DESC LIMIT %s", [ROWS_OF_RAW])
        ids = [job for (job,) in cursor.fetchall()]
        times = []
        for _ in range(20 * rounds):
            began = time.perf_counter()
            cursor.execute("SELECT * FROM jobs WHERE pandaid = ANY(%s)", [ids])
            cursor.fetchall()
            times.append(time.perf_counter() - began)
    return 1 / median(times)


def _sizes() -> dict[str, int]:
    """Rows of each table, as the statistics of the database have them."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT c.relname, sum(greatest(coalesce(p.reltuples, c.reltuples), 0))::bigint
                 FROM pg_class c LEFT JOIN pg_inherits i ON i.inhparent = c.oid LEFT JOIN pg_class p ON p.oid = i.inhrelid
                WHERE c.relname IN ('jedi_tasks', 'jobs', 'jedi_dataset_contents') GROUP BY 1"""
        )
        found = dict(cursor.fetchall())
    names = {"tasks": "jedi_tasks", "jobs": "jobs", "files": "jedi_dataset_contents"}
    return {name: int(found[table]) for name, table in names.items()}
