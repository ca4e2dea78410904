"""What each kind of incoming message does, in the transaction that marks it as processed. Each returns a sentence.

Any exception undoes the effect; the sentence of the exception is kept with the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db import connection, transaction

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.domain import range_jobs
from tasks_app.domain.killcodes import Kill, KilledJob
from tasks_app.domain.message_kinds import AGENTS
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.inputs.readers import ask_again, look_again
from tasks_app.lifecycle import file_moves
from tasks_app.models import Task
from tasks_app.outcomes.endings import KillOrder, kill_jobs
from tasks_app.submission import command_queue, known_names

Effect = Callable[[Mapping[str, Any], str], str]


class NotThereError(LookupError):
    """What the message is about does not exist, or not yet."""


def _files_staged(given: Mapping[str, Any], sender: str) -> str:
    """Files go from staging to pending; the feeder, which looks at once, makes whole bunches of them ready."""
    _task(given["task_id"])
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT d.datasetid FROM jedi_datasets d
                WHERE d.jeditaskid = %(task)s AND d.type IN ('input', 'pseudo_input')
                  AND (%(name)s::text IS NULL OR d.datasetname = %(name)s) ORDER BY d.datasetid FOR UPDATE""",
            {"task": given["task_id"], "name": given["dataset"]},
        )
        datasets = [row[0] for row in cursor.fetchall()]
        if not datasets:
            raise NotThereError(f"task {given['task_id']} has no input dataset {given['dataset'] or ''}".rstrip())
        staged = file_moves.note_staged(given["task_id"], datasets, given["files"])
        _look_at(datasets)
    return f"{plural(staged, 'file is', 'files are')} staged"


def _dataset_changed(given: Mapping[str, Any], sender: str) -> str:
    found = look_again([given["dataset"]])
    transaction.on_commit(partial(ask_again, [given["dataset"]]))
    return f"{plural(found, 'growing input is', 'growing inputs are')} looked at"


def _task_command(given: Mapping[str, Any], sender: str) -> str:
    """Names of sites are looked up now: a site that is unknown today may be there when the message is tried again."""
    known_names.check_parameters(given["parameters"], [_task(given["task_id"])])
    command_queue.give_command(
        given["task_id"],
        given["command"],
        by=sender[:128],
        reason=given["reason"] or "",
        parameters=given["parameters"],
    )
    return f"{given['command']} was given to task {given['task_id']}"


def _job_command(given: Mapping[str, Any], sender: str) -> str:
    """A kill with the code of external systems."""
    with hot_cursor() as cursor:
        cursor.execute(
            f"""SELECT jeditaskid, jobstatus, coalesce(prodsourcelabel, ''), {range_jobs.is_of_ranges()}
                 FROM jobs WHERE pandaid = %s FOR UPDATE""",  # noqa: S608 - a constant of ours
            [given["job_id"]],
        )
        row = cursor.fetchone()
        if row is None:
            raise NotThereError(f"there is no job {given['job_id']}")
        task, status, label, event_service = row
        if status in JOB_FINAL:
            return f"job {given['job_id']} is {status} already"
        reason = f"killed by {sender}" + (f": {given['reason']}" if given["reason"] else "")
        job = KilledJob(JobStatus(status), label, event_service)
        done = kill_jobs(cursor, [KillOrder(given["job_id"], task, job, Kill.EXTERNAL, reason)], by=sender[:128])
    return f"job {given['job_id']}: {done.ended} ended, {plural(done.told, 'pilot was', 'pilots were')} told to stop"


def _kick(given: Mapping[str, Any], sender: str) -> str:
    task, agent = _task(given["task_id"]), AGENTS[given["agent"]]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jedi_tasks SET next_check_at = clock_timestamp() WHERE jeditaskid = %s AND next_check_at > clock_timestamp()",
            [task.id],
        )
        if agent == "feeder":
            cursor.execute(
                "SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %s AND type = 'input' AND state = 'mutable'",
                [task.id],
            )
            _look_at([row[0] for row in cursor.fetchall()])
    kick(agent)
    return f"{agent} will handle task {task.id}, which is {task.status}"


def _task(task_id: int) -> Task:
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise NotThereError(f"there is no task {task_id}")
    return task


def _look_at(datasets: list[int]) -> None:
    """Make it time for the feeder to look at these datasets."""
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE datasetid IN (
                   SELECT datasetid FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE)""",
            [datasets],
        )
    kick("feeder")


EFFECTS: Mapping[str, Effect] = {
    "files_staged": _files_staged,
    "dataset_changed": _dataset_changed,
    "task_command": _task_command,
    "job_command": _job_command,
    "kick": _kick,
}
