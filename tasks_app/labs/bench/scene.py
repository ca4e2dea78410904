"""What benchmarks work on: sites, tasks with files, jobs in a wanted state. Written by SQL, since it is not measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from brokerage_app.cases.case import grid_of
from brokerage_app.verdicts.records import Snapshots
from brokerage_app.vocabulary.site_view import SiteView
from jedisite.database.sql import hot_cursor, texts
from tasks_app.agents import refiner
from tasks_app.ddm.base import FileInfo
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.generation_pass import GenerationPass
from tasks_app.generation.grid_view import GridView
from tasks_app.lifecycle import task_moves
from tasks_app.models import Dataset, Task

ME = "bench"
INPUT = "bench.input"
SECRET = "the secret of every job here"
DIGEST = hashlib.sha256(SECRET.encode()).digest()
JOB_TABLES = ("jobs", "job_params", "job_files", "jobs_statuslog", "job_output_report", "file_retries")


def generation_pass() -> GenerationPass:
    """A pass of the job generator over these queues, which have room for any number of jobs."""
    grid = grid_of(sites())
    return GenerationPass(GridView(grid, floor=10**9), Snapshots(grid), timezone.now())


def sites(number: int = 20) -> dict[str, SiteView]:
    """Online queues that take everything, each a little different."""
    return {
        name: SiteView(
            name=name,
            status="online",
            cores=1,
            max_memory_mb=4000,
            min_memory_mb=0,
            max_walltime_s=0,
            min_walltime_s=0,
            work_dir_mb=0,
            running=100 + place,
            queued=0,
            defined=0,
        )
        for place, name in enumerate(site_names(number))
    }


def site_names(number: int) -> list[str]:
    return [f"BENCH_{place:02d}" for place in range(number)]


def parameters(files_per_job: int, dataset: str = INPUT, events: int | None = None) -> dict[str, Any]:
    """Task parameters: an analysis of a dataset, with one output and one log for each job."""
    return {
        "taskName": "user.bench.analysis",
        "userName": ME,
        "vo": "lab",
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "bench",
        "taskPriority": 500,
        "transPath": "run_command",
        "architecture": "x86_64",
        "coreCount": 1,
        "ramCount": 1000,
        "ramUnit": "MB",
        "maxAttempt": 3,
        "nFilesPerJob": files_per_job,
        "log": {
            "type": "template",
            "param_type": "log",
            "dataset": "user.bench.log",
            "value": "bench.$JEDITASKID._${SN}.log.tgz",
        },
        "jobParameters": [
            {"type": "constant", "value": "--cut=pt>25 --events=-1"},
            {"type": "template", "param_type": "input", "dataset": dataset, "value": "--in=${IN/L}"},
            {
                "type": "template",
                "param_type": "output",
                "dataset": "user.bench.out",
                "value": "--out=bench.$JEDITASKID._${SN}.root",
            },
        ],
    }


def new_task(files_per_job: int = 10) -> tuple[Task, Dataset]:
    """A refined task, claimed, that can get jobs as soon as its input dataset has files."""
    task_id = task_moves.submit(
        parameters(files_per_job),
        name="user.bench.analysis",
        user=ME,
        vo="lab",
        label="user",
        task_type="anal",
        priority=500,
        parent_id=None,
    )
    refiner.run()
    task_moves.move_task(task_id, TaskStatus.READY, by=ME, reason="benchmark")
    task = Task.objects.select_related("job_params_template").get(pk=task_id)
    return task, Dataset.objects.get(task_id=task_id, type="input")


def pages(number: int, page: int = 50_000) -> Iterator[list[FileInfo]]:
    """Pages of files as data management lists them, made while they are read."""
    for first in range(0, number, page):
        yield [
            FileInfo(
                f"DAOD_BENCH.12345678._{n:08d}.pool.root.1",
                "bench",
                f"{n:08x}-0000-4000-8000-{n:012x}",
                10**9 + n,
                f"ad:{n:08x}",
                10_000,
                None,
                f"file://localhost/data/bench/{n % 256:02x}/DAOD_BENCH.12345678._{n:08d}.pool.root.1",
            )
            for n in range(first, min(first + page, number))
        ]


def fill(task: Task, dataset: Dataset, files: int) -> None:
    """Give the input dataset that many ready files, as a feed would."""
    with hot_cursor() as cursor:
        cursor.execute(
            """INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, creationdate, lfn, guid, type, status, fsize, checksum,
                      scope, attemptnr, maxattempt, nevents, keeptrack, failedattempt, ramcount, surl)
               SELECT %(task)s, %(dataset)s, clock_timestamp(),
                      'DAOD_BENCH.12345678._' || lpad(n::text, 8, '0') || '.pool.root.1',
                      md5(n::text)::uuid::text, 'input', 'ready', 1000000000 + n, 'ad:' || lpad(to_hex(n), 8, '0'), 'bench',
                      0, 3, 10000, 1, 0, 0, 'file://localhost/data/bench/DAOD_BENCH.12345678._' || lpad(n::text, 8, '0')
                 FROM generate_series(1, %(files)s::int) n""",
            {"task": task.id, "dataset": dataset.id, "files": files},
        )
    Dataset.objects.filter(pk=dataset.id).update(
        status="ready", files=files, files_to_be_used=files, files_used=0, pick_cursor=0
    )


def add_jobs(
    number: int,
    at: list[str],
    status: str,
    task_id: int = 10_000_000,
    inputs: int = 3,
    shares: Sequence[str | None] = (None,),
) -> range:
    """Jobs of one state spread over sites and shares, each with inputs, an output, a log and parameters. Returns their ids.

    Jobs past `activated` carry fence 1 and `SECRET`.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('jobs_pandaid_seq')")
        first = int(cursor.fetchone()[0])
        cursor.execute("SELECT setval('jobs_pandaid_seq', %s)", [first + number])
    handed_out = status not in ("activated", "defined")
    values = {
        "first": first,
        "last": first + number - 1,
        "status": status,
        "task": task_id,
        "sites": at,
        "inputs": inputs,
        "shares": texts(shares),
        "fence": int(handed_out),
        "digest": DIGEST if handed_out else None,
    }
    with hot_cursor() as cursor:
        for statement in (_JOBS, _PARAMS, _FILES):
            cursor.execute(statement, values)
    return range(first, first + number)


_JOBS = """
INSERT INTO jobs (pandaid, jeditaskid, jobname, jobstatus, creationtime, modificationtime, statechangetime, transformation,
       processingtype, prodsourcelabel, produsername, vo, computingsite, reqid, jobsetid, assignedpriority, currentpriority,
       corecount, minramcount, noutputdatafiles, attemptnr, maxattempt, failedattempt, ninputdatafiles, inputfilebytes,
       nevents, maxdiskcount, destinationdblock, fence, secret_hash, gshare)
SELECT n, %(task)s, 'user.bench.analysis.' || n, %(status)s, clock_timestamp(), clock_timestamp(), clock_timestamp(), 'analyse',
       'bench', 'user', 'bench', 'lab', (%(sites)s::text[])[1 + n %% cardinality(%(sites)s::text[])], %(task)s, %(task)s,
       500, 500,
       1, 1000, 2, 1, 1, 0, %(inputs)s::int, 3000000000, 30000, 3162, 'user.bench.out', %(fence)s, %(digest)s::bytea,
       (%(shares)s::text[])[1 + (n / cardinality(%(sites)s::text[])) %% cardinality(%(shares)s::text[])]
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
_PARAMS = """
INSERT INTO job_params (pandaid, jobparameters)
SELECT n, '--cut=pt>25 --events=-1 --in=DAOD_BENCH.12345678._' || lpad(n::text, 8, '0')
          || '.pool.root.1 --out=bench._' || n || '.root'
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
_FILES = """
INSERT INTO job_files (pandaid, jeditaskid, fileid, lfn, type, scope, dataset, guid, fsize, checksum, status, destinationse, surl)
SELECT n, %(task)s, n * 10 + k, CASE WHEN k <= %(inputs)s::int THEN 'DAOD_BENCH.12345678._' || n * 10 + k || '.pool.root.1'
       ELSE 'bench._' || n || '.' || k END,
       CASE WHEN k <= %(inputs)s::int THEN 'input' WHEN k = %(inputs)s::int + 1 THEN 'output' ELSE 'log' END,
       'bench', 'user.bench', md5(n::text)::uuid::text, 1000000000, 'ad:01234567', 'ready', 'LOCAL_SE',
       CASE WHEN k <= %(inputs)s::int THEN 'file://localhost/data/bench/' || n * 10 + k END
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) n, generate_series(1, %(inputs)s::int + 2) k
"""
