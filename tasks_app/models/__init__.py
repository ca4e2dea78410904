from tasks_app.models.alert import Alert, AlertRule, AlertTold
from tasks_app.models.attention import AttentionItem
from tasks_app.models.catalogue import CatalogueDataset, CatalogueFile
from tasks_app.models.command import Command
from tasks_app.models.dataset import Dataset
from tasks_app.models.failure import ErrorFingerprint, JobEndDue, JobEnds, JobFailure, JobNode
from tasks_app.models.file import File, FileRetry
from tasks_app.models.filling import EmptyQueue, Preassignment
from tasks_app.models.history import JobRetryHistory, JobStatusLog, TaskStatusLog, UsualDuration
from tasks_app.models.job import Job, JobArchive, JobFile, JobMetadata, JobOutputReport, JobParams
from tasks_app.models.lock import ProcessLock
from tasks_app.models.message import InMessage, Notification, OutMessage
from tasks_app.models.periodic import PeriodicTask
from tasks_app.models.production_system import FeedReader, ProductionCommand, ProductionTask
from tasks_app.models.retry import ErrorClass, RetryNote, RetryRule, TaskChangeDue
from tasks_app.models.sandbox import Sandbox
from tasks_app.models.scouting import ScoutReport
from tasks_app.models.shift import Handover, ShiftNote
from tasks_app.models.submission import SubmissionKey
from tasks_app.models.task import JobParamsTemplate, Task, TaskParams
from tasks_app.models.template import OutputTemplate, PlannedOutput
from tasks_app.models.transfer import FileReplica, TransferRequest, TransferRule
from tasks_app.models.usersecret import UserSecret
from tasks_app.models.view import SavedView, TasksSeen
from tasks_app.models.worker import Harvester, HarvesterCommand, HarvesterDialog, HarvesterMetrics, Worker, WorkerJob
from tasks_app.models.workflow import Workflow, WorkflowPackage

__all__ = [
    "Alert",
    "AlertRule",
    "AlertTold",
    "AttentionItem",
    "CatalogueDataset",
    "CatalogueFile",
    "Command",
    "Dataset",
    "EmptyQueue",
    "ErrorClass",
    "ErrorFingerprint",
    "FeedReader",
    "File",
    "FileReplica",
    "FileRetry",
    "Handover",
    "Harvester",
    "HarvesterCommand",
    "HarvesterDialog",
    "HarvesterMetrics",
    "InMessage",
    "Job",
    "JobArchive",
    "JobEndDue",
    "JobEnds",
    "JobFailure",
    "JobFile",
    "JobMetadata",
    "JobNode",
    "JobOutputReport",
    "JobParams",
    "JobParamsTemplate",
    "JobRetryHistory",
    "JobStatusLog",
    "Notification",
    "OutMessage",
    "OutputTemplate",
    "PeriodicTask",
    "PlannedOutput",
    "Preassignment",
    "ProcessLock",
    "ProductionCommand",
    "ProductionTask",
    "RetryNote",
    "RetryRule",
    "Sandbox",
    "SavedView",
    "ScoutReport",
    "ShiftNote",
    "SubmissionKey",
    "Task",
    "TaskChangeDue",
    "TaskParams",
    "TaskStatusLog",
    "TasksSeen",
    "TransferRequest",
    "TransferRule",
    "UserSecret",
    "UsualDuration",
    "Worker",
    "WorkerJob",
    "Workflow",
    "WorkflowPackage",
]
