"""The state of whole workflows in one expression, by which lists filter, count and show: from their tasks, not their packages.

A task of which all packages were dropped says nothing: what is left decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from django.db.models import QuerySet, TextField
from django.db.models.expressions import RawSQL

from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Workflow
from tasks_app.models.dataset import INPUT_TYPES
from tasks_app.models.job import OPEN_VALUES


class WorkflowState(StrEnum):
    HELD = "held"
    """It is on hold, or packages of it are and nothing else runs. Jobs that run already go on."""
    WAITING = "waiting"
    """No job of it has been made yet."""
    RUNNING = "running"
    FAILED = "failed"
    """Packages have failed, and nothing else of it runs."""
    SUCCESSFUL = "successful"
    CANCELED = "canceled"


_S = WorkflowState
ENDED: Final = frozenset({_S.SUCCESSFUL, _S.CANCELED})
_CANCELED: Final = (TaskStatus.ABORTED, TaskStatus.ABORTING, TaskStatus.TOABORT)
_BROKEN: Final = (TaskStatus.BROKEN, TaskStatus.TOBROKEN, TaskStatus.FAILED)


def _texts(values: Sequence[Any]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(map(str, values)))


# ruff: noqa: S608 - every piece is a constant of ours
_SPOILT: Final = f"""(t.status IN ({_texts(_BROKEN)}) OR t.status NOT IN ({_texts(_CANCELED)}) AND EXISTS (
    SELECT FROM jedi_datasets d
     WHERE d.jeditaskid = t.jeditaskid AND d.type IN ({_texts(INPUT_TYPES)}) AND d.nfilesfailed > 0))"""
_HAS_JOBS: Final = "EXISTS (SELECT FROM {} j WHERE j.jeditaskid = t.jeditaskid{})"
_OPEN: Final = _HAS_JOBS.format("jobs", f" AND j.jobstatus IN ({_texts(OPEN_VALUES)})")
_EVER: Final = f"({_HAS_JOBS.format('jobs', '')} OR {_HAS_JOBS.format('jobs_archive', '')})"
_FINAL: Final = f"t.status IN ({_texts(sorted(TASK_FINAL))})"
_STATE: Final = f"""CASE
  WHEN NOT EXISTS (SELECT FROM workflow_packages p WHERE p.workflow_id = workflows.id AND NOT p.is_canceled) THEN '{_S.CANCELED}'
  ELSE (SELECT CASE
          WHEN count(*) = 0 THEN '{_S.HELD}'
          WHEN bool_and(t.status IN ({_texts(_CANCELED)})) THEN '{_S.CANCELED}'
          WHEN bool_and({_FINAL}) THEN CASE WHEN bool_or({_SPOILT}) THEN '{_S.FAILED}' ELSE '{_S.SUCCESSFUL}' END
          WHEN bool_and({_FINAL} OR t.status = '{TaskStatus.PAUSED}') THEN '{_S.HELD}'
          WHEN bool_or({_OPEN}) THEN '{_S.RUNNING}'
          WHEN bool_or({_SPOILT}) THEN '{_S.FAILED}'
          WHEN bool_or(own.held AND NOT {_FINAL}) THEN '{_S.HELD}'
          WHEN bool_or({_EVER}) THEN '{_S.RUNNING}'
          ELSE '{_S.WAITING}' END
          FROM (SELECT p.jeditaskid, bool_or(p.is_held) AS held FROM workflow_packages p
                 WHERE p.workflow_id = workflows.id AND p.jeditaskid IS NOT NULL AND NOT p.is_canceled GROUP BY 1) own
          JOIN jedi_tasks t USING (jeditaskid)) END"""


def with_states(workflows: QuerySet[Workflow]) -> QuerySet[Workflow]:
    """The workflows with their `state`, which is worked out where it is asked for only."""
    return workflows.annotate(state=RawSQL(_STATE, (), output_field=TextField()))
