"""Facts on inputs that do not arrive: tasks that wait for them, and the copies for which they wait."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from jedisite import refusals
from jedisite.database.sql import hot_cursor
from tasks_app.attention.reading import MOST_TASKS
from tasks_app.attention.rules.attention_facts import CopyFact, TaskFact
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.inputs import staging
from tasks_app.transfers import copy_reasons

_WAITING_FOR_DATA: Final = """
SELECT t.jeditaskid, coalesce(t.taskname, ''), t.username, t.status, coalesce(t.statechangetime, t.modificationtime),
       coalesce(d.missing, 0)
  FROM jedi_tasks t
  LEFT JOIN LATERAL (SELECT sum(nfilesmissing) AS missing FROM jedi_datasets d
                      WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')) d
         ON true
 WHERE t.status = 'staging' OR (t.status = ANY(%(open)s) AND d.missing > 0)
 ORDER BY 6 DESC, 5, 1 LIMIT %(most)s
"""


def tasks_waiting_for_data() -> list[TaskFact]:
    """Tasks whose input is being staged, with how far that is, and open tasks some of whose input files are missing."""
    values = {"open": sorted(str(s) for s in TaskStatus if s not in TASK_FINAL), "most": MOST_TASKS}
    with hot_cursor() as cursor:
        cursor.execute(_WAITING_FOR_DATA, values)
        rows = cursor.fetchall()
    staged = staging.staged_by([task for task, _, _, status, *_ in rows if status == TaskStatus.STAGING])
    said = {task: f"{done} of {files} files have come from tape" for task, (done, files) in staged.items()}
    return [
        TaskFact(task, name, user, status, since, said.get(task, ""), 0, int(missing))
        for task, name, user, status, since, missing in rows
    ]


def copies_that_wait(now: datetime) -> list[CopyFact]:
    """Inputs that have not arrived, by what keeps them: a storage, a link or a tape. Four statements."""
    found: dict[tuple[str, str], CopyFact] = {}
    for copies, reason in copy_reasons.all_copies(now):
        same = found.get((reason.code, reason.subject))
        found[reason.code, reason.subject] = CopyFact(
            reason.code,
            reason.subject,
            same.said if same else reason.said,
            copies.files + (same.files if same else 0),
            frozenset(copies.tasks) | (same.tasks if same else frozenset()),
            min(copies.since or now, same.since if same else now),
            passes=not reason.code or refusals.get(reason.code).severity == "info",
        )
    return list(found.values())
