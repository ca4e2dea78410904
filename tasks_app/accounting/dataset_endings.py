"""What becomes of a task's datasets when the task ends. Called in the transaction of its last move."""

from __future__ import annotations

from typing import Final

from django.db import connection
from django.utils import timezone

from tasks_app.accounting import unmerged
from tasks_app.ddm import data_management
from tasks_app.models import Dataset
from tasks_app.models.dataset import OUTPUT_TYPES
from tasks_app.states import DatasetStatus, TaskStatus

OUTPUT_STATUS: Final[dict[str, str]] = {
    TaskStatus.DONE: DatasetStatus.DONE,
    TaskStatus.FINISHED: DatasetStatus.FINISHED,
    TaskStatus.FAILED: DatasetStatus.FAILED,
    TaskStatus.BROKEN: DatasetStatus.FAILED,
    TaskStatus.ABORTED: DatasetStatus.FAILED,
}
"""The last status of outputs and logs, by that of their task."""


def end_datasets(task_id: int, status: str) -> None:
    """Close the outputs of a task that ends as `status`, and give its datasets their last status."""
    _end_outputs(task_id, status)
    _end_inputs(task_id)
    unmerged.end_datasets(task_id, timezone.now())


def _end_outputs(task_id: int, status: str) -> None:
    outputs = Dataset.objects.filter(task_id=task_id, type__in=OUTPUT_TYPES)
    data_management().close(list(outputs.values_list("name", flat=True)))
    # Libraries have the state that their builds left them.
    outputs.exclude(type="lib").update(status=OUTPUT_STATUS[status], state="closed")


def _end_inputs(task_id: int) -> None:
    """No more files come, and none are waited for: those that were pending stay for a retry as files not yet used."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH released AS (
                UPDATE jedi_dataset_contents SET status = 'ready'
                 WHERE jeditaskid = %(task)s AND status IN ('pending', 'staging')
                   AND datasetid = ANY(ARRAY(SELECT datasetid FROM jedi_datasets
                                              WHERE jeditaskid = %(task)s AND nfiles > nfilestobeused))
                RETURNING datasetid),
            counts AS (SELECT datasetid, count(*) AS files FROM released GROUP BY 1)
            UPDATE jedi_datasets d SET nfilestobeused = nfilestobeused + c.files FROM counts c
             WHERE d.datasetid = c.datasetid""",
            {"task": task_id},
        )
        cursor.execute(
            """UPDATE jedi_datasets SET state = CASE WHEN state = 'mutable' THEN 'closed' ELSE state END,
                      status = CASE WHEN nfilesfinished >= nfiles AND nfiles > 0 THEN 'done'
                                    WHEN nfilesfinished > 0 THEN 'finished' ELSE 'failed' END
                WHERE jeditaskid = %s AND type IN ('input', 'pseudo_input') AND masterid IS NULL
                  AND status NOT IN ('removed', 'broken')""",
            [task_id],
        )
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s", [task_id])
