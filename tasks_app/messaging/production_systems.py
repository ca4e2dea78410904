"""Production systems write tasks into T_TASK and commands into PRODSYS_COMM: each becomes one here, whatever is killed when.

A row is held, goes through the door that everybody uses, and gets its answer, in one transaction. Who wrote it is the
account that has the name of the row's role of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from jedisite.agents.turns import TurnTooLongError, turn
from jedisite.identity.callers import Caller, caller_of_user
from jedisite.processes.logs import sentence_of
from jedisite.vocabulary.words import plural, sentence
from jedisite.web.problems import NotPlainJSONError, strict_json
from tasks_app.lifecycle import rights
from tasks_app.messaging.rules import prodsys
from tasks_app.messaging.rules.prodsys import BadRowError
from tasks_app.models import Task
from tasks_app.params import command_parameters
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import command_queue, known_names, submitting

log = structlog.get_logger(__name__)
ME: Final = "production_systems"
LONGEST_ANSWER: Final = 4000
MOST_NAMED: Final = 5
"""Rows and roles that the agent's page names of each kind."""
QUICK_S: Final = 5.0
"""A row of T_TASK whose check takes longer comes last: it is checked again, and may then take as long as any task's turn."""
SLOW: Final = f"Its check takes longer than {QUICK_S:g} s: it is imported after all rows that are quicker."
REFUSED: Final = "broken"
"""What T_TASK says of a row that became no task, as JEDI says of a task that could never run."""

_ACCOUNT = "EXISTS (SELECT 1 FROM auth_user u WHERE u.username = d.db_role AND u.is_active)"
# The oldest row of one role, of those that are quick or of those that are slow. What is longer than a request may be is not
# even read.
_NEXT_TASK = f"""
SELECT d.taskid, CASE WHEN octet_length(d.jedi_task_parameters) <= %(most)s THEN d.jedi_task_parameters END,
       d.taskname, d.username, d.vo, d.prodsourcelabel, d.priority, nullif(nullif(d.parent_tid, d.taskid), 0),
       EXISTS (SELECT 1 FROM jedi_tasks t WHERE t.jeditaskid = d.taskid) AS is_used
  FROM t_task d WHERE d.status = 'waiting' AND d.db_role = %(role)s AND (d.error = %(said)s) = %(slow)s AND {_ACCOUNT}
 ORDER BY d.taskid LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants
_PUT_LAST = "UPDATE t_task SET error = %s WHERE taskid = %s"
_TASK_ANSWERED = """UPDATE t_task SET status = %(status)s, error = %(error)s, timestamp = %(now)s, imported = %(imported)s,
       current_priority = (SELECT t.currentpriority FROM jedi_tasks t WHERE t.jeditaskid = taskid AND %(imported)s IS NOT NULL)
 WHERE taskid = %(task)s"""
# Commands of a task are given on in their order, and after its own row.
_NEXT_COMMAND = f"""
SELECT d.id, d.comm_task, d.comm_cmd, coalesce(d.comm_comment, ''),
       CASE WHEN coalesce(octet_length(d.comm_parameters), 0) <= %(most)s THEN coalesce(d.comm_parameters, 'null') END
  FROM prodsys_comm d
 WHERE d.comm_status = 'waiting' AND d.db_role = %(role)s AND {_ACCOUNT}
   AND NOT EXISTS (SELECT 1 FROM t_task t WHERE t.taskid = d.comm_task AND t.status = 'waiting' AND t.db_role = d.db_role)
   AND NOT EXISTS (SELECT 1 FROM prodsys_comm e WHERE e.comm_task = d.comm_task AND e.comm_status = 'waiting' AND e.id < d.id
                      AND e.db_role = d.db_role)
 ORDER BY d.id LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants
_COMMAND_ANSWERED = """UPDATE prodsys_comm SET comm_cmd = %(word)s, comm_status = %(status)s, comm_answer = %(answer)s,
       comm_command = %(command)s WHERE id = %(row)s"""
_WAITS = (
    "'This waits for an active account named ' || db_role || ', the role that wrote it: an administrator makes one.'"
)
_NO_ACCOUNT = (
    f"""UPDATE t_task SET error = {_WAITS} WHERE taskid = ANY(ARRAY(
            SELECT d.taskid FROM t_task d WHERE d.status = 'waiting' AND d.error = '' AND NOT {_ACCOUNT} ORDER BY 1
               FOR UPDATE SKIP LOCKED))""",  # noqa: S608
    f"""UPDATE prodsys_comm SET comm_answer = {_WAITS} WHERE id = ANY(ARRAY(
            SELECT d.id FROM prodsys_comm d WHERE d.comm_status = 'waiting' AND d.comm_answer = '' AND NOT {_ACCOUNT} ORDER BY 1
               FOR UPDATE SKIP LOCKED))""",  # noqa: S608
)
_WAITING = f"""SELECT (SELECT count(*) FROM t_task d WHERE d.status = 'waiting' AND NOT {_ACCOUNT})
       + (SELECT count(*) FROM prodsys_comm d WHERE d.comm_status = 'waiting' AND NOT {_ACCOUNT})"""  # noqa: S608
_WAITING_ROLES = f"""SELECT d.db_role FROM t_task d WHERE d.status = 'waiting' AND NOT {_ACCOUNT}
 UNION SELECT d.db_role FROM prodsys_comm d WHERE d.comm_status = 'waiting' AND NOT {_ACCOUNT} ORDER BY 1"""  # noqa: S608

# Each role by a look into the index, however many of its rows wait.
_OF_EACH = """
WITH RECURSIVE of_each AS (
    (SELECT min({name}) AS role FROM {table} WHERE {status} = 'waiting')
    UNION ALL
    SELECT (SELECT min({name}) FROM {table} WHERE {status} = 'waiting' AND {name} > role) FROM of_each WHERE role IS NOT NULL)
SELECT role FROM of_each WHERE role IS NOT NULL"""
_ROLES = (
    " UNION ".join(
        f"({_OF_EACH.format(name='db_role', table=table, status=status)})"
        for table, status in (("t_task", "status"), ("prodsys_comm", "comm_status"))
    )
    + " ORDER BY 1"
)

_REFUSALS = (
    BadRowError,
    submitting.SubmissionRefusedError,
    command_queue.CommandRefusedError,
)


@dataclass(frozen=True, slots=True)
class Served:
    """A row that got its answer, by its name. `error` is empty when it became what it asked for."""

    row: str
    error: str = ""


def first_of(names: Sequence[str]) -> str:
    """The first few of these names of rows or roles, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {plural(more, 'other')}" if more > 0 else "")


def roles_that_wait() -> list[str]:
    """Roles that have written rows which wait."""
    with connection.cursor() as cursor:
        cursor.execute(_ROLES)
        return [role for (role,) in cursor.fetchall()]


def import_next(role: str, now: datetime, *, slow: bool = False) -> Served | None:
    """Make the next row of a role in T_TASK a task, or refuse it with a sentence. None when no row waits for that.

    A row whose check takes longer than `QUICK_S` is put last, with a sentence; `slow`: the next one of those.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        values: dict[str, Any] = {
            "role": role,
            "most": settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            "said": SLOW,
            "slow": slow,
        }
        cursor.execute(_NEXT_TASK, values)
        row = cursor.fetchone()
        if row is None:
            return None
        task_id, text, *columns, is_used = row
        named = f"task {task_id} of {role}"
        try:
            limit = None if slow else QUICK_S
            error = _answer_to(task_id, lambda: _import(task_id, role, text, columns, is_used), limit)
        except TurnTooLongError:
            cursor.execute(_PUT_LAST, [SLOW, task_id])
            return Served(named)
        cursor.execute(
            _TASK_ANSWERED,
            {
                "task": task_id,
                "status": REFUSED if error else "registered",
                "error": error,
                "now": now,
                "imported": None if error else now,
            },
        )
    return Served(named, error)


def _import(task_id: int, role: str, text: str | None, columns: list[Any], is_used: bool) -> None:
    if is_used:
        raise BadRowError(f"There is a task {task_id} already; numbers are taken from the sequence jedi_tasks_id_seq.")
    names = ("taskname", "username", "vo", "prodsourcelabel", "priority", "parent_tid")
    given = prodsys.with_columns(_json("jedi_task_parameters", text), dict(zip(names, columns, strict=True)))
    caller = _caller(role)
    made = submitting.submit(submitting.check(given, caller), by=caller.name, task_id=task_id)
    if not made.is_new:
        raise BadRowError(
            f"Task {made.task_id} has this name; to run it again, give it the command incexec in PRODSYS_COMM."
        )


def give_next_command(role: str) -> Served | None:
    """Give the next command of a role on to its task, or refuse it with a sentence. None when none waits for that."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_NEXT_COMMAND, {"role": role, "most": settings.DATA_UPLOAD_MAX_MEMORY_SIZE})
        row = cursor.fetchone()
        if row is None:
            return None
        number, task_id, word, comment, text = row
        given: list[int] = []
        error = _answer_to(task_id, lambda: given.append(_give(role, task_id, word, comment, text)))
        # JEDI's words, spelled as JEDI spells them: killing, pauseing, kill failed.
        word = word.strip().lower()[:200]
        cursor.execute(
            _COMMAND_ANSWERED,
            {
                "row": number,
                "word": f"{word} failed" if error else f"{word}ing",
                "status": "refused" if error else "given",
                "answer": error,
                "command": None if error else given[0],
            },
        )
    return Served(f"command {number} of {role}", error)


def _give(role: str, task_id: int, word: str, comment: str, text: str | None) -> int:
    """The number of the command that the task was given."""
    command = prodsys.command_named(word)
    checked = command_parameters.check(command, prodsys.parameters(command, comment, _json("comm_parameters", text)))
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise BadRowError(f"There is no task {task_id}.")
    known_names.check_parameters(checked, [task])
    caller = _caller(role)
    if no := rights.refusal(caller, command, task, checked):
        raise BadRowError(no)
    return command_queue.give_command(task_id, command, by=caller.name, reason=comment, parameters=checked).pk


def _answer_to(task_id: int, work: Callable[[], object], most_s: float | None = None) -> str:
    """Do the work, or leave nothing of it behind and return the sentence why not.

    Raises TurnTooLongError when the work takes longer than `most_s`, where that is given. What the database is to blame for,
    such as a deadlock, is nobody's refusal: it is raised, and the row waits as before.
    """
    try:
        with transaction.atomic(), turn(ME, task_id, most_s):
            work()
    except ParamErrors as exc:
        return str(exc)[:LONGEST_ANSWER]  # begins with the name of a field, which is case-sensitive
    except _REFUSALS as exc:
        return sentence(exc)[:LONGEST_ANSWER]
    except OperationalError:
        raise
    except (Exception, TurnTooLongError) as exc:
        if isinstance(exc, TurnTooLongError) and most_s is not None:
            raise
        log.exception("production_systems.failed", task=task_id)
        return f"An unexpected error stopped this: {sentence_of(exc)}"
    return ""


def _json(column: str, text: str | None) -> Any:
    if text is None:
        raise BadRowError(f"The column {column} is longer than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes.")
    try:
        return strict_json(text.encode())
    except NotPlainJSONError as exc:
        raise BadRowError(f"The column {column} is no valid JSON: {exc}") from exc


def _caller(role: str) -> Caller:
    return caller_of_user(User.objects.get(username=role, is_active=True))


def roles_without_account() -> list[str]:
    """Roles that have written rows which wait for an account. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_ROLES)
        return [role for (role,) in cursor.fetchall()]


def rows_without_account() -> int:
    """Rows that wait since their role has no account here; each says so."""
    with connection.cursor() as cursor:
        for statement in _NO_ACCOUNT:
            cursor.execute(statement)
        cursor.execute(_WAITING)
        return int(cursor.fetchone()[0])
