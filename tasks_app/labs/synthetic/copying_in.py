"""Plans of tasks into the tables, by COPY and a few statements in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import psycopg
from django.conf import settings
from django.db import transaction

from jedisite.database.sql import copy_lines, copy_text, hot_cursor, texts
from tasks_app.failures import booking
from tasks_app.labs.synthetic import side_statements, statements
from tasks_app.labs.synthetic.made_up_plan import Size, TaskPlan, plans
from tasks_app.labs.synthetic.mishaps import BATCH_MISHAPS, MISHAPS, PILOTS, Mishap

OF_THOUSAND = 1000
BOOKED_AT_ONCE = 20_000


def make_tasks(
    size: Size,
    queues: Sequence[str],
    *,
    shares: Sequence[str],
    nuclei: Sequence[str],
    endpoints: Sequence[str],
    now: datetime,
    work_queues: Mapping[str, int] | None = None,
    places: Mapping[str, str] | None = None,
    seed: int = 1,
) -> dict[str, int]:
    """Make tasks with their files and jobs in one transaction. Returns the rows that there are now of each kind.

    `work_queues` are ids by activity, `places` the site of each queue (its own name without).
    """
    chance = Random(seed)
    made = plans(size, chance)
    values = {
        "now": now,
        "places": len(queues),
        "endpoints": texts(endpoints),
        "pilots": texts(PILOTS),
        "n_pilots": len(PILOTS),
        "batch": texts(BATCH_MISHAPS),
        "n_batch": len(BATCH_MISHAPS),
        "archived": now - timedelta(days=min(settings.JEDI_ARCHIVE_AFTER_DAYS, 2)),
    }
    with transaction.atomic(), hot_cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '256MB'")
        for statement in statements.TEMPORARY:
            cursor.execute(statement)
        copy_lines(cursor, "made", statements.MADE, _lines(made, now, shares, nuclei, dict(work_queues or {})))
        where = dict(places or {})
        copy_lines(
            cursor,
            "made_places",
            ("nr", "queue", "place"),
            (f"{nr}\t{copy_text(name)}\t{copy_text(where.get(name, name))}\n" for nr, name in enumerate(queues)),
        )
        copy_lines(
            cursor,
            "made_mishaps",
            ("place", "low", "high", "says", "pilot", "exe", "trans", "ddm", "dispatcher", "server", "supervisor"),
            _mishaps(),
        )
        cursor.execute("ANALYZE made")
        cursor.execute(statements.TRIES)
        for statement in statements.EACH_TRY:
            _execute(cursor, statement, values)
        for group in (
            statements.TASKS,
            statements.JOBS,
            statements.ROWS,
            side_statements.FILES,
            side_statements.WORKERS,
            side_statements.BOOKS,
        ):
            for statement in group:
                _execute(cursor, statement, values)
        cursor.execute(statements.COUNTS)
        ((tasks, files, jobs, open_jobs),) = cursor.fetchall()
    with hot_cursor() as cursor:
        cursor.execute("ANALYZE")
    while booking.book_ends(BOOKED_AT_ONCE):
        pass
    return {"tasks": tasks, "files": files, "jobs": jobs, "open jobs": open_jobs}


def _execute(cursor: psycopg.Cursor[Any], statement: str, values: Mapping[str, Any]) -> None:
    cursor.execute(statement, values if "%" in statement else None)


def _lines(
    made: Sequence[TaskPlan],
    now: datetime,
    shares: Sequence[str],
    nuclei: Sequence[str],
    work_queues: Mapping[str, int],
) -> Iterator[str]:
    """Lines for COPY, in the order of `statements.MADE`."""
    production, analysis = [s for s in shares if "Analysis" not in s], [s for s in shares if "Analysis" in s]
    for n, task in enumerate(made):
        fate = task.fate
        among = (analysis if task.is_user else production) or shares
        queue = work_queues.get(task.activity)
        yield (
            "\t".join(
                copy_text(str(value)) if value is not None else "\\N"
                for value in (
                    n,
                    fate.status,
                    fate.input_status,
                    fate.output_status,
                    texts(fate.path),
                    fate.has_files,
                    fate.is_over,
                    fate.sure,
                    fate.says,
                    now - timedelta(seconds=task.created_s),
                    now - timedelta(seconds=task.changed_s),
                    task.span_s,
                    task.user,
                    task.is_user,
                    task.activity,
                    task.cores,
                    task.ram_mb,
                    task.priority,
                    task.failing,
                    task.files,
                    task.units,
                    task.most,
                    among[n % len(among)],
                    nuclei[n % len(nuclei)] if nuclei else None,
                    queue,
                )
            )
            + "\n"
        )


def _mishaps() -> Iterator[str]:
    """Each kind of failure with its part, in thousandths, of the failures at its place, as lines for COPY."""
    by_place: dict[str, list[Mishap]] = {}
    for mishap in MISHAPS:
        by_place.setdefault(mishap.where, []).append(mishap)
    for place, kinds in by_place.items():
        total, low = sum(kind.weight for kind in kinds), 0
        passed = 0
        for kind in kinds:
            passed += kind.weight
            high = OF_THOUSAND * passed // total
            values = (kind.pilot, kind.exe, kind.trans, kind.ddm, kind.dispatcher, kind.server, kind.supervisor)
            codes = "\t".join("\\N" if value is None else str(value) for value in values)
            yield f"{place}\t{low}\t{high}\t{copy_text(kind.says)}\t{codes}\n"
            low = high
