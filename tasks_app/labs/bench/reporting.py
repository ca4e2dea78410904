"""bench report: heartbeats and final reports against single UPDATEs by key, and how fast the adder books outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import psycopg
from django.db import connection
from django.utils import timezone
from psycopg.types.json import Json

from jedisite.database.sql import hot_cursor
from tasks_app.dispatch.reports import Proof, Report, update_job
from tasks_app.generation.turn_steps import generate
from tasks_app.labs.bench import scene
from tasks_app.labs.bench.crowd import Step, crowd
from tasks_app.labs.bench.database import Place, empty, settle
from tasks_app.labs.bench.generating import CONTENTS
from tasks_app.labs.bench.measuring import Clock, Result, Target, in_turn
from tasks_app.models import Dataset, Task
from tasks_app.outcomes.final_reports import book_reports

PROCESSES = 8
INPUTS = 5
RAW_BEAT, BEAT, RAW_FINAL, FINAL = "UPDATE by key", "heartbeat", "UPDATE and outcome row", "final report"
ADDER = "adder"
PROOF = Proof(fence=1, secret=scene.SECRET)
MEASURES = {"cpu_time_s": 1234, "max_rss_kb": 900_000, "avg_rss_kb": 800_000, "node": "node001.bench"}
OUTPUTS = {
    f"bench._{name}": {
        "guid": f"{name}-0000-4000-8000-000000000000",
        "fsize": 10**8,
        "adler32": "01234567",
        "surl": f"root://se.example//data/bench/{name}",
        "nevents": 10_000,
    }
    for name in ("output", "log")
}

_BEAT = """
UPDATE jobs SET heartbeat_at = clock_timestamp(), cpuconsumptiontime = %(cpu_time_s)s, maxrss = %(max_rss_kb)s,
       avgrss = %(avg_rss_kb)s, modificationhost = %(node)s WHERE pandaid = %(job)s
"""
_FINAL = """
WITH moved AS (
    UPDATE jobs SET jobstatus = 'holding', heartbeat_at = clock_timestamp(), statechangetime = clock_timestamp(),
           modificationtime = clock_timestamp(), endtime = clock_timestamp(), cpuconsumptiontime = %(cpu_time_s)s,
           maxrss = %(max_rss_kb)s, avgrss = %(avg_rss_kb)s, modificationhost = %(node)s WHERE pandaid = %(job)s
    RETURNING pandaid, jeditaskid)
INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
SELECT pandaid, jeditaskid, 1, 'finished', %(outputs)s FROM moved
"""


def _statement(text: str, jobs: range, more: dict[str, object], *, again: bool) -> Callable[[int], Step]:
    def make(index: int) -> Step:
        mine = itertools.cycle(jobs[index::PROCESSES]) if again else iter(jobs[index::PROCESSES])
        connection.ensure_connection()
        line = connection.connection

        def step() -> int:
            job_id = next(mine, None)
            if job_id is None:
                return 0
            with psycopg.Cursor(line) as cursor:
                return cursor.execute(text, {**MEASURES, **more, "job": job_id}).rowcount

        return step

    return make


def _reports(status: str, jobs: range, outputs: dict[str, object], *, again: bool) -> Callable[[int], Step]:
    def make(index: int) -> Step:
        mine = itertools.cycle(jobs[index::PROCESSES]) if again else iter(jobs[index::PROCESSES])

        def step() -> int:
            job_id = next(mine, None)
            if job_id is None:
                return 0
            update_job(Report(job_id, status, PROOF, MEASURES, outputs=outputs))
            return 1

        return step

    return make


def running(number: int, sites: list[str]) -> range:
    empty(*scene.JOB_TABLES)
    jobs = scene.add_jobs(number, sites, "running", inputs=0)
    settle("jobs")
    return jobs


def run(place: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    number, case_ms, booked = [*sizes, *(24_000, 2000, 5000)[len(sizes) :]]
    seconds, sites = case_ms / 1000, scene.site_names(20)

    def in_crowd(make: Callable[[range], Callable[[int], Step]]) -> Callable[[], float]:
        return lambda: crowd(PROCESSES, make(running(number, sites)), seconds).rate

    task, dataset = scene.new_task(INPUTS)
    cases = {
        RAW_BEAT: in_crowd(lambda jobs: _statement(_BEAT, jobs, {}, again=True)),
        BEAT: in_crowd(lambda jobs: _reports("running", jobs, {}, again=True)),
        RAW_FINAL: in_crowd(lambda jobs: _statement(_FINAL, jobs, {"outputs": Json(OUTPUTS)}, again=False)),
        FINAL: in_crowd(lambda jobs: _reports("finished", jobs, dict(OUTPUTS), again=False)),
        ADDER: lambda: _book(task, dataset, booked),
    }
    rates = in_turn(cases, rounds, say)
    result = Result(
        "report", "calls/s", rates, FINAL, RAW_FINAL, {"jobs": number, "case_ms": case_ms, "booked": booked}
    )
    result.targets += [
        Target("heartbeat / UPDATE by key", rates.ratio(BEAT, RAW_BEAT), 0.8, 1.0),
        Target("final report / UPDATE and outcome row", rates.ratio(FINAL, RAW_FINAL), 0.7, 0.9),
        Target("jobs booked a second", rates.median(ADDER), 2000),
    ]
    result.more = {
        "heartbeat_ratio": round(rates.ratio(BEAT, RAW_BEAT), 4),
        "booked_per_s": round(rates.median(ADDER), 1),
    }
    return result


def _book(task: Task, dataset: Dataset, jobs: int) -> float:
    """Jobs a second that the adder books: jobs of five inputs, one output and one log that all have finished."""
    empty(CONTENTS, "catalogue_files", *scene.JOB_TABLES)
    scene.fill(task, dataset, jobs * INPUTS)
    settle(CONTENTS)
    generate(task, task.fence, scene.generation_pass(), timezone.now(), max_jobs=jobs)
    _finish_all()
    settle("jobs", "job_files", "job_output_report")
    done = 0
    with Clock() as clock:
        while booked := book_reports(1000):
            done += booked
    _check_books(dataset, jobs, done)
    return done / clock.seconds


def _finish_all() -> None:
    """Let every job send its final report."""
    with hot_cursor() as cursor:
        cursor.execute("UPDATE jobs SET jobstatus = 'holding', fence = 1, starttime = clock_timestamp()")
        cursor.execute(
            """INSERT INTO job_output_report (pandaid, jeditaskid, attemptnr, jobstatus, data)
               SELECT pandaid, jeditaskid, 1, 'finished', json_object_agg(lfn, json_build_object('guid', md5(lfn)::uuid,
                      'fsize', 1000000, 'adler32', '01234567', 'surl', 'root://se.example//data/' || lfn, 'nevents', 1000))
                 FROM job_files WHERE type IN ('output', 'log') GROUP BY pandaid, jeditaskid"""
        )


def _check_books(dataset: Dataset, jobs: int, done: int) -> None:
    finished = Dataset.objects.values_list("files_finished", flat=True).get(pk=dataset.id)
    Dataset.objects.filter(task_id=dataset.task_id).update(files_finished=0, files_used=0, files=0, files_to_be_used=0)
    if done != jobs or finished != jobs * INPUTS:
        raise RuntimeError(f"{done} of {jobs} jobs were booked, with {finished} inputs finished")
