"""How the preprocessing step of a task ends: the task returns to the refiner, or is finished as failed."""

from __future__ import annotations

from jedisite.vocabulary.words import plural
from tasks_app.domain.states import DatasetStatus, TaskStatus
from tasks_app.inputs.preprocessed import INPUT
from tasks_app.lifecycle import dataset_moves, task_moves
from tasks_app.models import Dataset, File, Task
from tasks_app.outcomes.rules.task_endings import PREPROCESSING_FAILED
from tasks_app.params.splitrule import SplitRule

ENDED = f"""
NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = '{INPUT}'
               AND d.nfilestobeused > d.nfilesfinished + d.nfilesfailed)
"""  # noqa: S608 - a constant of ours
"""SQL on the row `t` of a task: the record of its step is finished, or has no attempt left."""


def end_preprocessing(task_id: int, fence: int, *, by: str) -> None:
    """Move a claimed task on whose step has ended."""
    task = Task.objects.get(pk=task_id)
    dataset = Dataset.objects.get(task_id=task_id, type=INPUT)
    if dataset.files_finished:
        dataset_moves.move(Dataset.objects.filter(pk=dataset.id), DatasetStatus.DONE)
        task_moves.move_task(
            task_id,
            TaskStatus.REGISTERED,
            by=by,
            reason="preprocessing is done",
            fence=fence,
            error_dialog=None,
            split_rule=str(SplitRule.parse(task.split_rule).having("UP", 2)),
        )
        return
    failed = File.objects.filter(task_id=task_id, dataset_id=dataset.id).values_list("attempt", flat=True).first()
    reason = f"{PREPROCESSING_FAILED} {plural(failed or 0, 'time')}"
    task_moves.move_task(task_id, TaskStatus.PREPARED, by=by, reason=reason, fence=fence, error_dialog=reason)
