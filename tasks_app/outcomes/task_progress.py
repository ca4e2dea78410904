"""Per cent done of tasks."""

from __future__ import annotations

from django.db import connection
from django.db.models import Sum

from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES


def progress_of(task_id: int) -> int:
    sums = Dataset.objects.filter(task_id=task_id, type__in=INPUT_TYPES, master_id=None).aggregate(
        files=Sum("files_to_be_used"), done=Sum("files_finished")
    )
    return int(100 * (sums["done"] or 0) / sums["files"]) if sums["files"] else 0


def book_progress() -> None:
    """Per cent done of the running tasks, written only where it has changed and the row is free."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH now AS (
                SELECT d.jeditaskid AS id, (100 * sum(d.nfilesfinished) / greatest(sum(d.nfilestobeused), 1))::int AS progress
                  FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
                 WHERE t.status IN ('ready', 'running', 'scouting') AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
                 GROUP BY 1),
            free AS (
                SELECT t.jeditaskid, now.progress FROM jedi_tasks t JOIN now ON now.id = t.jeditaskid
                 WHERE t.progress IS DISTINCT FROM now.progress AND now.progress BETWEEN 0 AND 100
                   FOR UPDATE OF t SKIP LOCKED)
            UPDATE jedi_tasks t SET progress = free.progress FROM free WHERE t.jeditaskid = free.jeditaskid
            """
        )
