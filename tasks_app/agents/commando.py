"""Task commando: obeys the commands of users."""

from __future__ import annotations

import structlog
from django.db import connection, transaction
from django.utils import timezone

from jedisite.agents import Pass, owner
from tasks_app import moves
from tasks_app.accounting.endings import end_jobs
from tasks_app.ddm import data_management
from tasks_app.models import Command, Dataset, Task
from tasks_app.models.dataset import MADE_TYPES
from tasks_app.states import JOB_OPEN, TaskCommand, TaskStatus

log = structlog.get_logger(__name__)
ME = "commando"
LIMIT = 50
ATTEMPTS_ADDED = 5
"""Attempts that a retry gives to each file that has none left."""
_OPEN = "(" + ", ".join(f"'{status}'" for status in sorted(JOB_OPEN)) + ")"


def run(limit: int = LIMIT) -> Pass:
    """Obey waiting commands, then complete the kills and finishes whose last job has ended."""
    items = 0
    while items < limit and _obey_one():
        items += 1
    items += _complete(TaskStatus.ABORTING) + _complete(TaskStatus.FINISHING)
    return Pass(items, more=items >= limit)


@transaction.atomic
def _obey_one() -> bool:
    command = (
        Command.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(status="waiting")
        .order_by("id")
        .first()
    )
    if command is None:
        return False
    task = Task.objects.select_for_update().get(pk=command.task_id)
    try:
        with transaction.atomic():  # a refused command leaves nothing behind
            moves.check_command(task, command.name)
            command.answer = _ACTIONS[TaskCommand(command.name)](task, command)
            command.status = "done"
    except moves.CommandRefusedError as exc:
        command.status, command.answer = "refused", str(exc)
    except Exception as exc:
        log.exception("commando.failed", command=command.id, task=task.id)
        command.status, command.answer = "refused", f"an unexpected error stopped it: {type(exc).__name__}: {exc}"
    command.ended = timezone.now()
    command.save(update_fields=["status", "answer", "ended"])
    return True


def _kill(task: Task, command: Command) -> str:
    moves.move_task(
        task.id, TaskStatus.ABORTING, by=command.owner, reason=_why(command), remember=True, error_dialog=_why(command)
    )
    return end_jobs(task.id, by=command.owner, reason="the task was killed")


def _finish(task: Task, command: Command) -> str:
    moves.move_task(
        task.id, TaskStatus.FINISHING, by=command.owner, reason=_why(command), remember=True, error_dialog=_why(command)
    )
    soft = bool((command.parameters or {}).get("soft"))
    return end_jobs(
        task.id, by=command.owner, reason="the task was told to finish", running_too=not soft, keep_unmerged=True
    )


def _pause(task: Task, command: Command) -> str:
    # What a pending or throttled task returns to is kept.
    back = (
        task.old_status
        if task.status in (TaskStatus.PENDING, TaskStatus.THROTTLED) and task.old_status
        else task.status
    )
    moves.move_task(task.id, TaskStatus.PAUSED, by=command.owner, reason=_why(command), old_status=back)
    return f"{_shift(task.id, 'activated', 'throttled', command.owner)} queued jobs are held back"


def _resume(task: Task, command: Command) -> str:
    if task.status == TaskStatus.STAGING:
        moves.move_task(task.id, TaskStatus.STAGED, by=command.owner, reason=_why(command), old_status=None)
        return "goes on"
    back = task.old_status or TaskStatus.READY
    moves.move_task(task.id, back, by=command.owner, reason=_why(command), old_status=None)
    return f"{_shift(task.id, 'throttled', 'activated', command.owner)} jobs are queued again"


def _retry(task: Task, command: Command) -> str:
    reopened = _reopen_files(task.id)
    if not reopened:
        raise moves.CommandRefusedError(f"task {task.id} has no file to try again: all were processed")
    outputs = Dataset.objects.filter(task=task, type__in=MADE_TYPES)
    names = sorted(set(outputs.values_list("name", flat=True)))
    outputs.update(status="ready", state="open")
    data_management().create(names, scope=_scope(names), task_id=task.id)
    moves.move_task(task.id, TaskStatus.TORETRY, by=command.owner, reason=_why(command))
    moves.move_task(
        task.id,
        TaskStatus.READY,
        by=ME,
        reason=f"{reopened} files are tried again",
        attempt=(task.attempt or 0) + 1,
        start_time=None,
        end_time=None,
        frozen_time=None,
        error_dialog=None,
        old_status=None,
        progress=None,
        current_priority=task.task_priority,
    )
    return f"{reopened} files are tried again"


_ACTIONS = {
    TaskCommand.KILL: _kill,
    TaskCommand.FINISH: _finish,
    TaskCommand.PAUSE: _pause,
    TaskCommand.RESUME: _resume,
    TaskCommand.RETRY: _retry,
}


def _why(command: Command) -> str:
    return f"{command.name} by {command.owner}" + (f": {command.comment}" if command.comment else "")


def _scope(names: list[str]) -> str:
    from tasks_app.models import CatalogueDataset

    return CatalogueDataset.objects.filter(name__in=names).values_list("scope", flat=True).first() or "user"


def _shift(task_id: int, old: str, new: str, by: str) -> int:
    """Move all jobs of a task from one queued state to another. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH locked AS (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND jobstatus = %(old)s
                                ORDER BY pandaid FOR UPDATE),
                    moved AS (UPDATE jobs SET jobstatus = %(new)s, statechangetime = clock_timestamp(),
                                     modificationtime = clock_timestamp()
                               WHERE pandaid IN (SELECT pandaid FROM locked) RETURNING pandaid, computingsite)
               INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor)
               SELECT pandaid, %(new)s, clock_timestamp(), computingsite, %(by)s FROM moved""",
            {"task": task_id, "old": old, "new": new, "by": by},
        )
        return cursor.rowcount


def _complete(status: str) -> int:
    """Tasks that are being killed or finished and have no open job left go on."""
    # A task that is to finish waits for its merge jobs; one that is killed does not.
    merging = " AND j.jobstatus <> 'merging'" if status == TaskStatus.ABORTING else ""
    open_job = f"SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus IN {_OPEN}{merging}"  # noqa: S608
    free = f"NOT EXISTS ({open_job})"
    work = _abort if status == TaskStatus.ABORTING else _pass
    return moves.for_each(moves.claim_tasks(owner(), [status], LIMIT, condition=free), work, by=ME)


def _abort(task_id: int, fence: int) -> None:
    moves.move_task(task_id, TaskStatus.TOABORT, by=ME, reason="no job is left", fence=fence)


@transaction.atomic
def _pass(task_id: int, fence: int) -> None:
    given_up = _give_up_files(task_id)
    reason = f"no job is left; {given_up} files were not processed"
    moves.move_task(task_id, TaskStatus.PASSED, by=ME, reason=reason, fence=fence)


def _give_up_files(task_id: int) -> int:
    """Files that wait for another attempt get none. Returns how many files of master inputs that are."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s", [task_id])
        cursor.execute(
            """
            WITH given_up AS (
                UPDATE jedi_dataset_contents SET attemptnr = maxattempt
                 WHERE jeditaskid = %(task)s AND type IN ('input', 'pseudo_input') AND status = 'ready' AND keeptrack = 1
                   AND maxattempt IS NOT NULL AND attemptnr < maxattempt
                   AND (maxfailure IS NULL OR failedattempt < maxfailure)
                RETURNING datasetid, fileid),
            counts AS (SELECT datasetid, count(*) AS files, max(fileid) AS last FROM given_up GROUP BY 1),
            counted AS (
                UPDATE jedi_datasets d SET nfilesfailed = nfilesfailed + c.files, nfilesused = nfilesused + c.files,
                       pick_cursor = greatest(d.pick_cursor, c.last),
                       state = CASE WHEN state = 'mutable' THEN 'closed' ELSE state END
                  FROM counts c WHERE d.datasetid = c.datasetid RETURNING d.masterid, c.files)
            SELECT coalesce(sum(files) FILTER (WHERE masterid IS NULL), 0) FROM counted
            """,
            {"task": task_id},
        )
        return int(cursor.fetchone()[0])


def _reopen_files(task_id: int) -> int:
    """Give files without attempts more of them and queue all that is not finished. Returns how many files."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s", [task_id])
        cursor.execute(
            """
            WITH reopened AS (
                UPDATE jedi_dataset_contents c
                   SET maxattempt = CASE WHEN c.maxattempt <= c.attemptnr OR c.failedattempt >= c.maxfailure
                                         THEN greatest(c.maxattempt, c.attemptnr) + %(more)s ELSE c.maxattempt END,
                       maxfailure = CASE WHEN c.failedattempt >= c.maxfailure OR c.maxattempt <= c.attemptnr
                                         THEN c.maxfailure + %(more)s ELSE c.maxfailure END
                  FROM jedi_datasets d
                 WHERE c.jeditaskid = %(task)s AND d.jeditaskid = %(task)s AND d.datasetid = c.datasetid
                   AND c.type IN ('input', 'pseudo_input') AND c.status = 'ready' AND c.keeptrack = 1
                RETURNING c.datasetid, c.fileid),
            queued AS (
                INSERT INTO file_retries (fileid, jeditaskid, datasetid)
                SELECT fileid, %(task)s, datasetid FROM reopened ON CONFLICT DO NOTHING),
            counts AS (SELECT datasetid, count(*) AS files, max(fileid) AS last FROM reopened GROUP BY 1),
            counted AS (
                UPDATE jedi_datasets d SET status = 'ready', nfilesfailed = 0, nfilesused = nfilesfinished,
                       nfilestobeused = nfiles, pick_cursor = greatest(d.pick_cursor, c.last)
                  FROM counts c WHERE d.datasetid = c.datasetid RETURNING d.masterid, c.files)
            SELECT coalesce(sum(files) FILTER (WHERE masterid IS NULL), 0) FROM counted
            """,
            {"task": task_id, "more": ATTEMPTS_ADDED},
        )
        return int(cursor.fetchone()[0])
