"""The preprocessing step of a task: what it found, and the parameters with that filled in.

The refiner lays out the step alone: a dataset of type `pp_input` with one record, and one of type `pp_log`. Its job, which
`generation/prepro.py` makes, is tried as often as the record allows. What it reports under `results` fills the `%%NAME%%` of
the task's parameters when the task is refined for the second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks_app.domain.states import FileStatus
from tasks_app.models import Dataset, File, JobMetadata, TaskParams
from tasks_app.refining.preprocessing import fill_marks

INPUT, LOG = "pp_input", "pp_log"
TYPES = (INPUT, LOG)
RESULTS = "results"
"""Key of the job's metadata with what it found: a text, or a list of texts, for each name."""


def params_of(task_id: int) -> dict[str, Any]:
    """The parameters of a task as its agents read them: what preprocessing found stands for its marks."""
    raw: dict[str, Any] = TaskParams.objects.get(pk=task_id).params
    results = results_of(task_id) if raw.get("preproSpec") else None
    return fill_marks(raw, results) if results is not None else raw


def results_of(task_id: int) -> dict[str, str] | None:
    """What the preprocessing step of a task found, by name; None when it has not ended well, or there is none."""
    step = Dataset.objects.filter(task_id=task_id, type=INPUT).values_list("id", flat=True).first()
    if step is None:
        return None
    jobs = File.objects.filter(task_id=task_id, dataset_id=step, status=FileStatus.FINISHED)
    job_id = jobs.values_list("job_id", flat=True).first()
    if job_id is None:
        return None
    metadata = JobMetadata.objects.filter(pk=job_id).values_list("metadata", flat=True).first()
    found = metadata.get(RESULTS) if isinstance(metadata, Mapping) else None
    return texts_of(found) if isinstance(found, Mapping) else {}


def texts_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Results as texts: lists become comma lists. What is neither text, number nor list of those is left out."""
    texts = {}
    for name, value in found.items():
        several = value if isinstance(value, list) else [value]
        if all(isinstance(one, str | int) and not isinstance(one, bool) for one in several):
            texts[str(name)] = ",".join(map(str, several))
    return texts
