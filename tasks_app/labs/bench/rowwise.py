"""Job generation the way that JEDI does it: statements job by job and row by row, a commit a job. Only to compare."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import transaction

from jedisite.database.sql import hot_cursor
from tasks_app.models import Dataset, OutputTemplate, Task


def generate_row_by_row(task: Task, dataset: Dataset, site: str, files_per_job: int, jobs: int) -> int:
    """Make jobs of the first files of a dataset. Returns the number of files used."""
    with hot_cursor() as cursor:
        cursor.execute(
            "SELECT fileid, lfn FROM jedi_dataset_contents WHERE jeditaskid = %s AND datasetid = %s ORDER BY fileid LIMIT %s",
            [task.id, dataset.id, files_per_job * jobs],
        )
        files = cursor.fetchall()
    templates = list(OutputTemplate.objects.filter(task_id=task.id).select_related("dataset").order_by("id"))
    used = 0
    for first in range(0, len(files), files_per_job):
        with transaction.atomic(), hot_cursor() as cursor:
            used += _one_job(cursor, task, dataset, site, files[first : first + files_per_job], templates)
    return used


def _one_job(
    cursor: psycopg.Cursor[Any],
    task: Task,
    dataset: Dataset,
    site: str,
    files: list[tuple[int, str]],
    templates: list[OutputTemplate],
) -> int:
    cursor.execute("SELECT nextval('jobs_pandaid_seq')")
    (job_id,) = cursor.fetchone() or (0,)
    cursor.execute(
        """INSERT INTO jobs (pandaid, jeditaskid, jobname, jobstatus, creationtime, modificationtime, statechangetime,
                  transformation, processingtype, prodsourcelabel, produsername, vo, computingsite, reqid, jobsetid,
                  assignedpriority, currentpriority, corecount, minramcount, noutputdatafiles, attemptnr, maxattempt,
                  failedattempt, ninputdatafiles, inputfilebytes, maxdiskcount, destinationdblock, fence)
           VALUES (%(job)s, %(task)s, %(name)s, 'activated', clock_timestamp(), clock_timestamp(), clock_timestamp(), %(trans)s,
                  'bench', 'user', 'bench', 'lab', %(site)s, %(task)s, %(task)s, 500, 500, 1, 1000, 2, 1, 1, 0, %(files)s,
                  10000000000, 10000, 'user.bench.out', 0)""",
        {
            "job": job_id,
            "task": task.id,
            "name": f"{task.name}.{job_id}",
            "trans": task.trans_path,
            "site": site,
            "files": len(files),
        },
    )
    for file_id, lfn in files:
        cursor.execute(
            """UPDATE jedi_dataset_contents SET status = 'running', pandaid = %s
                WHERE jeditaskid = %s AND datasetid = %s AND fileid = %s AND status = 'ready'""",
            [job_id, task.id, dataset.id, file_id],
        )
        cursor.execute(
            """INSERT INTO job_files (pandaid, jeditaskid, datasetid, dataset, status, fileid, lfn, scope, fsize, type, attemptnr)
               VALUES (%s, %s, %s, %s, 'ready', %s, %s, 'bench', 1000000000, 'input', 0)""",
            [job_id, task.id, dataset.id, dataset.name, file_id, lfn],
        )
    names = [_output(cursor, task, job_id, template) for template in templates]
    text = f"--cut=pt>25 --events=-1 --in={','.join(lfn for _, lfn in files)} --out={names[0]}"
    cursor.execute("INSERT INTO job_params (pandaid, jobparameters) VALUES (%s, %s)", [job_id, text])
    cursor.execute(
        """INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
           VALUES (%s, 'activated', clock_timestamp(), %s, 'bench')""",
        [job_id, site],
    )
    cursor.execute(
        "UPDATE jedi_datasets SET nfilesused = nfilesused + %s WHERE datasetid = %s", [len(files), dataset.id]
    )
    return len(files)


def _output(cursor: psycopg.Cursor[Any], task: Task, job_id: int, template: OutputTemplate) -> str:
    """One output of a job: its serial number, its row as a file and its row with the job, and the counters."""
    cursor.execute(
        "UPDATE jedi_output_template SET serialnr = serialnr + 1 WHERE outtempid = %s RETURNING serialnr - 1",
        [template.id],
    )
    (serial,) = cursor.fetchone() or (0,)
    name = template.file_name_template.replace("${SN}", f"{serial:06d}").replace("$JEDITASKID", str(task.id))
    cursor.execute(
        """INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, type, status, scope, pandaid, outpandaid, keeptrack)
           VALUES (%s, %s, %s, %s, 'defined', 'bench', %s, %s, 1) RETURNING fileid""",
        [task.id, template.dataset_id, name, template.dataset.type, job_id, job_id],
    )
    (file_id,) = cursor.fetchone() or (0,)
    cursor.execute(
        """INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type, scope, status, dataset)
           VALUES (%s, %s, %s, %s, %s, %s, 'bench', 'defined', %s)""",
        [job_id, task.id, template.dataset_id, file_id, name, template.dataset.type, template.dataset.name],
    )
    cursor.execute("UPDATE jedi_datasets SET nfiles = nfiles + 1 WHERE datasetid = %s", [template.dataset_id])
    return name
