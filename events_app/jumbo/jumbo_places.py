"""Which queues take jumbo jobs of a task: its broker is asked, with needs of such jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from brokerage_app.formulas.memory import COMPENSATION_PERCENT
from brokerage_app.formulas.resource_type_of import type_of_job
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.resource_types import ResourceType as Kind
from brokerage_app.vocabulary.site_view import SiteView
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.rules.jumbo_needs import jumbo_needs
from tasks_app.generation.wants import needs_of
from tasks_app.inputs.preprocessed import params_of
from tasks_app.lifecycle.job_hooks import Slot
from tasks_app.models import Task

ANY_NUMBER: Final = 2**62


def jumbo_queues(task: Task, view: GridView, now: datetime, ready_events: int = ANY_NUMBER) -> list[str]:
    """The names of the queues that take jumbo jobs of a task now, the best first; none of a task that names its site.

    `ready_events`: events of the task that wait.
    """
    if task.site:
        return []
    needs = jumbo_needs(needs_of(task, params_of(task.id)), ready_events)
    return [choice.site for choice in view.decide(needs, task, now).verdict.chosen]


def slot_at(site: SiteView, needs: TaskNeeds, kinds: list[Kind]) -> Slot:
    """The slot of a job with these needs at a queue, and where its log goes."""
    cores, declared = needs.cores_at(site), needs.memory_at(site)
    memory_mb = declared * COMPENSATION_PERCENT // 100 if declared else site.max_memory_mb
    log_endpoint = site.written(analysis=needs.label in ANALYSIS_LABELS) or None
    return Slot(site.queue, log_endpoint, cores, memory_mb or None, type_of_job(cores, memory_mb, kinds))
