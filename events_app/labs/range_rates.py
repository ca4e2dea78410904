"""bench events: ranges are inserted, handed out and reported, 100 a call, against COPY and UPDATE of as many rows.

By HTTP, too: hand-outs and reports in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import psycopg
from django.db import connection, transaction

from events_app.labs import range_end_times, range_web
from events_app.lifecycle.range_handout import take
from events_app.lifecycle.range_moves import NewBlock, insert_blocks
from events_app.lifecycle.range_reports import RangeKey, book, lock_and_hold
from events_app.rules.event_jobs import EventJobKind
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
RAW, TAKE, SAY, COPY, INSERT, INSERT_ONE, HTTP, END, END_JUMBO, TAKE_MANY, SAY_MANY = (
    "UPDATE of 100 rows by key",
    "hand-out",
    "update",
    "COPY, a row a range",
    "insert",
    "insert, a range a file",
    "hand-out and update by HTTP",
    "end of a consumer with 10 000 ranges",
    "end of a jumbo job with 10 000 ranges",
    "hand-out among those of other tasks",
    "update among those of other tasks",
)
ENDING = 10_000
"""Ranges that a job has in hand when it ends, and how many seconds that may take."""
END_S = 0.2
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

AT_ONCE = 500_000
_OTHERS = """
INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
       def_max_eventid, events_per_range, attemptnr, processed_upto_eventid, status)
SELECT 1 + n / 1000 %% 1000, %s, n / 1000, n / 1000, n / 1000, 1 + n %% 1000, 1 + n %% 1000, 1 + n %% 1000, 1, 10, 0, 4
  FROM generate_series(%s::bigint, %s::bigint) n
"""


def _jobs(number: int, others: int = 0) -> range:
    """Running jobs, each with a jobset of its own. Of `jedi_events`, so many rows of other tasks stay, and nothing else."""
    if others:
        _keep(others)
        empty(*scene.JOB_TABLES)
    else:
        empty("jedi_events", *scene.JOB_TABLES)
    jobs = scene.add_jobs(number, scene.site_names(1), "running", task_id=TASK, inputs=1)
    with hot_cursor() as cursor:
        # As PanDA's pilots get them, who report without a secret.
        cursor.execute("UPDATE jobs SET jobsetid = pandaid + %s, eventservice = 1, secret_hash = NULL", [OFFSET])
    settle("jobs")
    return jobs


def _keep(others: int) -> None:
    """Rows of finished ranges of other tasks, in all partitions; they are made once."""
    with hot_cursor() as cursor:
        cursor.execute("DELETE FROM jedi_events WHERE jeditaskid >= %s", [TASK])
        cursor.execute("SELECT EXISTS (SELECT FROM jedi_events)")
        if cursor.fetchall() == [(True,)]:
            return
        for first in range(0, others, AT_ONCE):
            cursor.execute(_OTHERS, [DATASET, first, min(first + AT_ONCE, others) - 1])
    settle("jedi_events", to_disk=True)


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
    number, in_file, case_ms, others = [*sizes, *(1_000_000, 1000, 2000, 0)[len(sizes) :]]
    seconds, files = case_ms / 1000, number // in_file

    def raw() -> float:
        jobs = _jobs(files)
        _copy(jobs, in_file)
        settle("jedi_events")
        return crowd(PROCESSES, _by_key(jobs, in_file), seconds).rate

    def taken(among: int = 0) -> float:
        jobs = _jobs(files, among)
        _insert(_blocks(jobs, in_file, in_file))
        settle("jedi_events")
        return crowd(PROCESSES, _taking(jobs), seconds).rate

    def said(among: int = 0) -> float:
        jobs = _jobs(files, among)
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

    def ended(kind: EventJobKind) -> Callable[[], float]:
        def case() -> float:
            empty("jedi_events", *scene.JOB_TABLES)
            return ENDING / range_end_times.seconds(ENDING, kind, A_CALL)

        return case

    cases = {
        RAW: raw,
        TAKE: taken,
        SAY: said,
        COPY: copied,
        INSERT: inserted(in_file),
        INSERT_ONE: inserted(1),
        HTTP: by_http,
        END: ended(EventJobKind.CONSUMER),
        END_JUMBO: ended(EventJobKind.JUMBO),
    }
    token = range_web.pilot_token()
    with web.running(place) as site:
        rates = in_turn(cases, rounds, say)
    if others:
        # One after the other: as many rows are made only once.
        more = in_turn({TAKE_MANY: lambda: taken(others), SAY_MANY: lambda: said(others)}, rounds, say)
        rates.by_case.update(more.by_case)
    result = Result(
        "events",
        "ranges/s",
        rates,
        TAKE,
        RAW,
        {"ranges": number, "ranges_a_file": in_file, "case_ms": case_ms, "others": others},
    )
    result.targets += [
        Target("hand-out / UPDATE of 100 rows", rates.ratio(TAKE, RAW), 0.7, 1.0),
        Target("update / UPDATE of 100 rows", rates.ratio(SAY, RAW), 0.7, 1.0),
        Target("insert / COPY of a row a range", rates.ratio(INSERT, COPY), 0.5),
        Target("insert of blocks of one / COPY", rates.ratio(INSERT_ONE, COPY), 0.5),
        *(Target(f"{case}, seconds", ENDING / rates.median(case), END_S, at_most=True) for case in (END, END_JUMBO)),
    ]
    if others:
        result.targets += [
            Target(f"{many} / {alone}", rates.median(many) / rates.median(alone), 0.8)
            for many, alone in ((TAKE_MANY, TAKE), (SAY_MANY, SAY))
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
