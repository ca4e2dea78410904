"""bench events: ranges are inserted, handed out and reported, 100 a call, against COPY and UPDATE of as many rows.

By HTTP, too: hand-outs and reports in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import psycopg
from django.db import connection, transaction

from events_app.labs import range_web
from events_app.lifecycle.range_handout import take
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.lifecycle.range_reports import RangeKey, book, lock_and_hold
from events_app.rules.event_states import EventStatus
from events_app.rules.range_blocks import RangeBlock
from events_app.rules.range_ids import RangeId, parse_range_id
from events_app.rules.reported_items import RangeReport
from jedisite.database.sql import copy_lines, hot_cursor
from tasks_app.labs.bench import scene, web
from tasks_app.labs.bench.crowd import Step, crowd
from tasks_app.labs.bench.database import Place, empty, settle
from tasks_app.labs.bench.measuring import Clock, Rates, Result, Target, in_turn

PROCESSES = 8
A_CALL = 100
TASK, DATASET = 10_000_000, 1
OFFSET = 1_000_000
"""Between the number of a job and that of its jobset."""
MINE = "pandaid = %(job)s"
RAW, TAKE, SAY, COPY, INSERT, INSERT_ONE, HTTP = (
    "UPDATE of 100 rows by key",
    "hand-out",
    "update",
    "COPY, a row a range",
    "insert",
    "insert, a range a file",
    "hand-out and update by HTTP",
)
COLUMNS = (
    "jeditaskid",
    "datasetid",
    "fileid",
    "pandaid",
    "event_offset",
    "job_processid",
    "def_min_eventid",
    "def_max_eventid",
    "attemptnr",
    "processed_upto_eventid",
    "status",
)
_BY_KEY = """
UPDATE jedi_events SET status = 1, pandaid = %s
 WHERE jeditaskid = %s AND pandaid = %s AND fileid = %s AND job_processid = ANY(%s::bigint[])
"""


def _jobs(number: int) -> range:
    """Running jobs, each with a jobset of its own."""
    empty("jedi_events", *scene.JOB_TABLES)
    jobs = scene.add_jobs(number, scene.site_names(1), "running", task_id=TASK, inputs=1)
    with hot_cursor() as cursor:
        # As PanDA's pilots get them, who report without a secret.
        cursor.execute("UPDATE jobs SET jobsetid = pandaid + %s, eventservice = 1, secret_hash = NULL", [OFFSET])
    settle("jobs")
    return jobs


def _blocks(jobs: Sequence[int], ranges: int, length: int) -> list[NewBlock]:
    """The ranges of each job's file, as blocks of so many."""
    return [
        NewBlock(TASK, DATASET, job + OFFSET, RangeBlock(job, first, min(first + length - 1, ranges), 1))
        for job in jobs
        for first in range(1, ranges + 1, length)
    ]


def _insert(blocks: list[NewBlock]) -> float:
    """Blocks a second, each jobset in one transaction."""
    by_jobset: dict[int, list[NewBlock]] = {}
    for one in blocks:
        by_jobset.setdefault(one.jobset_id, []).append(one)
    with Clock() as clock, hot_cursor() as cursor:
        for some in by_jobset.values():
            with transaction.atomic():
                insert_blocks(cursor, some)
    return len(blocks) / clock.seconds


def _copy(jobs: Sequence[int], ranges: int) -> float:
    """Rows a second, a row a range, each jobset in one transaction."""
    with Clock() as clock, hot_cursor() as cursor:
        for job in jobs:
            lines = (
                f"{TASK}\t{DATASET}\t{job}\t{job + OFFSET}\t{job + OFFSET}\t{n}\t{n}\t{n}\t10\t0\t0\n"
                for n in range(1, ranges + 1)
            )
            with transaction.atomic():
                copy_lines(cursor, "jedi_events", COLUMNS, lines)
    return len(jobs) * ranges / clock.seconds


def _by_key(jobs: Sequence[int], ranges: int) -> Callable[[int], Step]:
    def make(index: int) -> Step:
        calls = ((job, first) for job in jobs[index::PROCESSES] for first in range(1, ranges + 1, A_CALL))
        connection.ensure_connection()
        cursor = psycopg.Cursor(connection.connection)

        def step() -> int:
            job, first = next(calls, (0, 0))
            if not job:
                return 0
            which = f"{{{','.join(map(str, range(first, first + A_CALL)))}}}"
            return cursor.execute(_BY_KEY, [job, TASK, job + OFFSET, job, which]).rowcount

        return step

    return make


def _ids(job: int) -> list[str]:
    """What a consumer is handed: the ids of its ranges, as its pilot gets them."""
    with hot_cursor() as cursor:
        taken = take(cursor, TASK, A_CALL, MINE, {"job": job})
    return [
        str(RangeId(TASK, job, one.block.file_id, r.first, one.block.attempts))
        for one in taken.blocks
        for r in one.block.ranges()
    ]


def _taking(jobs: Sequence[int]) -> Callable[[int], Step]:
    def make(index: int) -> Step:
        mine = iter(jobs[index::PROCESSES])
        current = next(mine, 0)

        def step() -> int:
            nonlocal current
            while current:
                if given := len(_ids(current)):
                    return given
                current = next(mine, 0)
            return 0

        return step

    return make


def _saying(jobs: Sequence[int], ranges: int) -> Callable[[int], Step]:
    """Each consumer has been handed all of its ranges, and reports what it was handed in a call, as pilots do."""

    def make(index: int) -> Step:
        mine = _hundreds(jobs[index::PROCESSES], ranges)

        def step() -> int:
            job, ids = next(mine, (0, []))
            return _say(job, ids) if job else 0

        return step

    return make


def _hundreds(jobs: Sequence[int], ranges: int) -> Iterator[tuple[int, list[str]]]:
    """Of each job in turn, the ids of the ranges that it gets by each call."""
    for job in jobs:
        for first in range(1, ranges + 1, A_CALL):
            yield job, [f"{TASK}-{job}-{job}-{n}-10" for n in range(first, min(first + A_CALL, ranges + 1))]


def _in_turn(jobs: Sequence[int], ranges: int) -> Iterator[tuple[int, list[str]]]:
    """The same of all jobs at once: no two calls of a job follow each other."""
    for of_all in zip(*[_hundreds([job], ranges) for job in jobs], strict=True):
        yield from of_all


def _say(job: int, ids: Sequence[str]) -> int:
    said = {}
    for text in ids:
        one = parse_range_id(text)
        said[RangeKey(one.job_id, one.file_id, one.process_id, one.attempts)] = RangeReport(EventStatus.FINISHED)
    with transaction.atomic(), hot_cursor() as cursor:
        _, held = lock_and_hold(cursor, TASK, job, said, "true", {})
        return book(cursor, TASK, held, said, {job: job})


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    number, in_file, case_ms = [*sizes, *(1_000_000, 1000, 2000)[len(sizes) :]]
    seconds, files = case_ms / 1000, number // in_file

    def raw() -> float:
        jobs = _jobs(files)
        _copy(jobs, in_file)
        settle("jedi_events")
        return crowd(PROCESSES, _by_key(jobs, in_file), seconds).rate

    def taken() -> float:
        jobs = _jobs(files)
        _insert(_blocks(jobs, in_file, in_file))
        settle("jedi_events")
        return crowd(PROCESSES, _taking(jobs), seconds).rate

    def said() -> float:
        jobs = _jobs(files)
        _insert(_blocks(jobs, in_file, in_file))
        for job in jobs:
            while _ids(job):
                pass
        settle("jedi_events")
        return crowd(PROCESSES, _saying(jobs, in_file), seconds).rate

    def copied() -> float:
        return _copy(_jobs(files // 10), in_file)

    def inserted(length: int) -> Callable[[], float]:
        def case() -> float:
            return _insert(_blocks(_jobs(files // 10), in_file, length)) * length

        return case

    def by_http() -> float:
        jobs = _jobs(files)
        _insert(_blocks(jobs, in_file, in_file))
        settle("jedi_events")
        return range_web.rate(site.port, token, _in_turn(jobs, in_file), A_CALL, seconds)

    cases = {
        RAW: raw,
        TAKE: taken,
        SAY: said,
        COPY: copied,
        INSERT: inserted(in_file),
        INSERT_ONE: inserted(1),
        HTTP: by_http,
    }
    token = range_web.pilot_token()
    with web.running(place) as site:
        rates = in_turn(cases, rounds, say)
    result = Result(
        "events", "ranges/s", rates, TAKE, RAW, {"ranges": number, "ranges_a_file": in_file, "case_ms": case_ms}
    )
    result.targets += [
        Target("hand-out / UPDATE of 100 rows", rates.ratio(TAKE, RAW), 0.7, 1.0),
        Target("update / UPDATE of 100 rows", rates.ratio(SAY, RAW), 0.7, 1.0),
        Target("insert / COPY of a row a range", rates.ratio(INSERT, COPY), 0.5),
        Target("insert of blocks of one / COPY", rates.ratio(INSERT_ONE, COPY), 0.5),
    ]
    result.more = {
        name: _figures(rates, ours, base)
        for name, ours, base in (
            ("handout", TAKE, RAW),
            ("update", SAY, RAW),
            ("insert", INSERT, COPY),
            ("http", HTTP, RAW),
        )
    }
    return result


def _figures(rates: Rates, ours: str, raw: str) -> dict[str, Any]:
    return {
        "rate": round(rates.median(ours), 1),
        "raw": round(rates.median(raw), 1),
        "ratio": round(median(rates.ratios(ours, raw)), 4),
    }
