"""Build jobs: a task's sources are compiled once at each place, and the jobs that run there read the library.

A library is a dataset of type `lib` with two files, the archive and the log of the job that makes it. The archive's
state says how far it is: defined while it is built, then finished, failed or cancelled. Jobs that need it before it is
there are stored as defined; `accounting.libraries` activates or ends them. Whoever makes or looks at libraries has
locked the task's row, so that none is settled between the look and the jobs that are made for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg

from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.grid.configured import configuration
from brokerage_app.grid.written_storage import WRITTEN_BY_ANALYSIS
from brokerage_app.vocabulary.site_view import SiteView
from jedisite.database.sql import hot_cursor, numbers, take_ids
from tasks_app.ddm import data_management
from tasks_app.ddm.base import FileInfo, Maker, UnknownDatasetError
from tasks_app.domain.states import DatasetStatus, JobStatus
from tasks_app.generation.rules.common_facts import LOCAL, TaskFacts, job_walltime_s
from tasks_app.inputs.data_rights import logs_of_others
from tasks_app.models import Dataset, File, Job, JobFile, JobParams, JobStatusLog, Task
from tasks_app.params import buildstep
from tasks_app.params.buildstep import BadBuildError, BuildStep, Library

Source = tuple[str, FileInfo]
"""A sandbox that data management keeps: its dataset and file."""
ME = "job_generator"


def library_for(
    cursor: psycopg.Cursor[Any], task: TaskFacts, step: BuildStep, site: SiteView, scope: str, now: datetime
) -> Library:
    """The library that jobs of a task read at a site; without one that can be used, a job is made that builds it.

    In a transaction that has locked the task's row. Queues that share a storage share their libraries. `scope` is that
    of the task's outputs. Raises BadBuildError, UnresolvedPlaceholder.
    """
    place = site.written(analysis=True) or LOCAL
    return _usable(cursor, task.id, step, place, now) or _make(cursor, task, step, site, place, scope, now)


_USABLE = """
SELECT d.datasetid, d.datasetname, c.fileid, c.lfn, c.scope, d.destination, c.pandaid, c.status = 'finished', c.fsize,
       c.checksum, c.guid, c.surl
  FROM jedi_datasets d JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
 WHERE d.jeditaskid = %(task)s AND d.type = 'lib' AND d.destination = %(place)s AND d.attributes = %(mark)s
   AND d.creationtime > %(since)s AND c.jeditaskid = %(task)s AND c.type = 'lib' AND c.status IN ('finished', 'defined')
 ORDER BY c.status = 'finished' DESC, d.datasetid DESC LIMIT 1
"""


def _usable(cursor: psycopg.Cursor[Any], task_id: int, step: BuildStep, place: str, now: datetime) -> Library | None:
    """The newest library of the task at a place that is not too old: one that is ready, or one that is being built."""
    since = now - buildstep.KEPT
    cursor.execute(_USABLE, {"task": task_id, "place": place[:60], "mark": step.mark, "since": since})
    row = cursor.fetchone()
    return Library(*row) if row else None


_FAILING = f"""
SELECT q.name, count(*) FROM jedi_datasets d
  JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid AND c.type = 'lib'
  JOIN queues q ON coalesce({WRITTEN_BY_ANALYSIS}, %(local)s) = d.destination
 WHERE d.jeditaskid = %(task)s AND d.type = 'lib' AND d.attributes = %(mark)s AND d.creationtime >= %(since)s
   AND c.jeditaskid = %(task)s AND c.status IN ('finished', 'failed')
 GROUP BY q.name HAVING bool_and(c.status = 'failed') AND count(*) >= %(most)s
"""  # noqa: S608 - a piece of ours


def failing_sites(task: Task, step: BuildStep) -> dict[str, int]:
    """Queues at whose place the step has failed so often, and never went well, since the task was started or retried."""
    if task.start_time is None:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(
            _FAILING,
            {
                "task": task.id,
                "mark": step.mark,
                "local": LOCAL,
                "since": task.start_time,
                "most": buildstep.FAILED_BUILDS,
            },
        )
        return dict(cursor.fetchall())


def _make(
    cursor: psycopg.Cursor[Any], task: TaskFacts, step: BuildStep, site: SiteView, place: str, scope: str, now: datetime
) -> Library:
    """Store a build job with the dataset that it fills."""
    source = source_of(step.sandbox, task.user, "buildSpec.tarBallViaDDM")
    # A pass has one time for all sites: what was made before sets the names apart.
    before = Dataset.objects.filter(task_id=task.id, type="lib").count()
    name = buildstep.dataset_name(task.id, now + timedelta(microseconds=before))
    dataset = Dataset.objects.create(
        task_id=task.id,
        name=name,
        type="lib",
        status=DatasetStatus.RUNNING,
        state="open",
        vo=task.vo,
        site=site.queue[:60],
        destination=place[:60],
        attributes=step.mark,
        creation_time=now,
        modification_time=now,
        files=2,
        files_to_be_used=2,
        files_used=2,
    )
    lib_id, log_id = take_ids(cursor, "public." + _file_sequence(cursor), 2)
    (job_id,) = take_ids(cursor, "jobs_pandaid_seq", 1)
    library = Library(
        dataset.id, name, lib_id, f"{name}.{lib_id}.lib.tgz", scope, dataset.destination, job_id, ready=False
    )
    log_name = f"{name}.{lib_id}.log.tgz"
    data_management().create([name], scope=scope, by=Maker(task.user, task.id))
    Job.objects.create(**_columns(task, step, site, library, now))
    JobParams.objects.create(id=job_id, params=step.command_line(library.lfn))
    made = ((lib_id, library.lfn, "lib"), (log_id, log_name, "log"))
    File.objects.bulk_create(
        [
            File(
                id=file_id,
                task_id=task.id,
                dataset_id=dataset.id,
                lfn=lfn,
                type=type_,
                status="defined",
                scope=scope,
                attempt=0,
                keep_track=1,
                job_id=job_id,
                out_job_id=job_id,
                creation_date=now,
            )
            for file_id, lfn, type_ in made
        ]
    )
    # For the job that makes it, the archive is an output like any other.
    JobFile.objects.bulk_create(
        [
            JobFile(
                job_id=job_id,
                task_id=task.id,
                dataset_id=dataset.id,
                file_id=file_id,
                lfn=lfn,
                scope=scope,
                type="log" if type_ == "log" else "output",
                dataset=name,
                destination_block=name,
                status="defined",
                destination_se=dataset.destination,
                attempt=0,
            )
            for file_id, lfn, type_ in made
        ]
        + ([_input_row(job_id, task.id, source)] if source else [])
    )
    reason = f"builds the library of task {task.id} at {place}"
    JobStatusLog.objects.create(job_id=job_id, status="activated", at=now, site=site.queue, by=ME, reason=reason)
    return library


def _columns(task: TaskFacts, step: BuildStep, site: SiteView, library: Library, now: datetime) -> dict[str, Any]:
    priority = max(buildstep.PRIORITY, task.priority + 1)
    ram_mb = buildstep.ram_mb(site.max_memory_mb)
    hours = configuration().get("jobgen", "BUILD_JOB_MAX_WALLTIME", vo=task.vo)
    return {
        "id": library.job_id,
        "task_id": task.id,
        "name": f"{task.name}.{library.job_id}"[:256],
        "status": JobStatus.ACTIVATED,
        "creation_time": now,
        "modification_time": now,
        "state_change_time": now,
        "transformation": step.transformation,
        "processing_type": task.processing_type,
        "prod_source_label": step.label,
        "user": task.user,
        "working_group": task.working_group,
        "vo": task.vo,
        "site": site.queue,
        "destination_block": library.dataset,
        "req_id": task.req_id,
        "jobset_id": task.req_id,
        "assigned_priority": priority,
        "current_priority": priority,
        "work_queue_id": task.work_queue_id,
        "gshare": task.gshare,
        "resource_type": type_of_job(buildstep.CORES, ram_mb),
        "core_count": buildstep.CORES,
        "min_ram_mb": ram_mb,
        "max_walltime_s": job_walltime_s(hours, task.base_walltime_s, site),
        "max_disk_mb": site.work_dir_mb or None,
        "attempt": 1,
        "max_attempt": 1,
        "failed_attempt": 0,
        "input_files": 0,
        "output_files": 2,
        "release": task.release,
        "home_package": task.home_package,
        "cmt_config": task.cmt_config,
        "container_name": task.container,
    }


_sequence: list[str] = []


def _file_sequence(cursor: psycopg.Cursor[Any]) -> str:
    if not _sequence:
        cursor.execute("SELECT pg_get_serial_sequence('jedi_dataset_contents', 'fileid')")
        row = cursor.fetchone()
        assert row is not None
        _sequence.append(row[0].rpartition(".")[2])
    return _sequence[0]


def source_of(sandbox: tuple[str, str] | None, user: str, name: str) -> Source | None:
    """The file of data management that is a sandbox; None without one. Raises BadBuildError when there is no such file, or
    it holds a log that the user may not read."""
    if sandbox is None:
        return None
    dataset, lfn = sandbox
    if no := logs_of_others([dataset], user).get(dataset):
        raise BadBuildError(f"{name}: {no}")
    try:
        data_management().describe(dataset)
        for page in data_management().list_files(dataset):
            for file in page:
                if file.lfn == lfn:
                    return dataset, file
    except UnknownDatasetError as exc:
        raise BadBuildError(f"{name}: {exc}") from exc
    raise BadBuildError(f"{name}: the dataset {dataset} has no file {lfn}")


def attach_sandbox(task_id: int, source: Source, jobs: Sequence[int]) -> None:
    """Give new jobs the sandbox as a file that they read."""
    JobFile.objects.bulk_create([_input_row(job_id, task_id, source) for job_id in jobs])


def _input_row(job_id: int, task_id: int, source: Source) -> JobFile:
    """The sources as a file that a job reads; no counter of the task knows it."""
    dataset, file = source
    return JobFile(
        job_id=job_id,
        task_id=task_id,
        lfn=file.lfn,
        scope=file.scope,
        guid=file.guid,
        size=file.size,
        status="ready",
        checksum=file.checksum,
        type="lib",
        dataset=dataset,
        surl=file.surl,
    )


def attach(cursor: psycopg.Cursor[Any], task_id: int, library: Library, jobs: Sequence[int]) -> None:
    """Give new jobs the library as a file that they read."""
    cursor.execute(
        """INSERT INTO job_files (pandaid, jeditaskid, datasetid, dataset, status, fileid, lfn, scope, guid, fsize, checksum,
                                  type, surl)
           SELECT j.pandaid, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'lib', %s FROM unnest(%s::bigint[]) j (pandaid)""",
        [
            task_id,
            library.dataset_id,
            library.dataset,
            "ready" if library.ready else "defined",
            library.file_id,
            library.lfn,
            library.scope,
            library.guid,
            library.size,
            library.checksum,
            library.surl,
            numbers(jobs),
        ],
    )
