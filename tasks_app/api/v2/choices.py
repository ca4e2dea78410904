"""The states and commands as the schema of the API names them."""

from __future__ import annotations

from brokerage_app.models import Queue
from tasks_app.domain.states import FILE_STATES, DatasetStatus, JobStatus, TaskStatus
from tasks_app.domain.task_commands import TaskCommand
from tasks_app.domain.transfer_states import TransferStatus
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.workflow_states import WorkflowState

TASK_STATUS = [s.value for s in TaskStatus]
DATASET_STATUS = [s.value for s in DatasetStatus]
FILE_STATUS = [s.value for s in FILE_STATES]
JOB_STATUS = [s.value for s in JobStatus]
TASK_COMMAND = [c.value for c in TaskCommand]
QUEUE_STATUS = list(Queue.STATUSES)
TRANSFER_STATUS = [s.value for s in TransferStatus]
WORKFLOW_STATE = [s.value for s in WorkflowState]
PACKAGE_STATUS = [s.value for s in PackageStatus]
