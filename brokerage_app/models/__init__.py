from brokerage_app.models.classes import AnalysisUser, SiteClassRecord, TaskClassRecord
from brokerage_app.models.config import GdpConfig
from brokerage_app.models.network import DatasetReplica, LinkValue, ReplicaLookup
from brokerage_app.models.nodes import NodeGpus, WorkerNode
from brokerage_app.models.queue import GlobalShare, WorkQueue
from brokerage_app.models.samples import Sample
from brokerage_app.models.site import (
    Queue,
    QueueEndpoint,
    QueueStatusLog,
    ResourceType,
    Site,
    SoftwareTags,
    StorageEndpoint,
    StorageFolder,
    StorageTrouble,
)
from brokerage_app.models.statistics import (
    GridVersion,
    HarvesterSlots,
    JobCount,
    PilotCalls,
    QueueActivity,
    Refreshed,
    UserCount,
    WorkerNodeCpus,
    WorkerNodeGpus,
    WorkerStats,
)
from brokerage_app.models.throttle import ThrottleRecord
from brokerage_app.models.verdict import GridSnapshot, VerdictCount, VerdictHour, VerdictMinute, VerdictRecord

__all__ = [
    "AnalysisUser",
    "DatasetReplica",
    "GdpConfig",
    "GlobalShare",
    "GridSnapshot",
    "GridVersion",
    "HarvesterSlots",
    "JobCount",
    "LinkValue",
    "NodeGpus",
    "PilotCalls",
    "Queue",
    "QueueActivity",
    "QueueEndpoint",
    "QueueStatusLog",
    "Refreshed",
    "ReplicaLookup",
    "ResourceType",
    "Sample",
    "Site",
    "SiteClassRecord",
    "SoftwareTags",
    "StorageEndpoint",
    "StorageFolder",
    "StorageTrouble",
    "TaskClassRecord",
    "ThrottleRecord",
    "UserCount",
    "VerdictCount",
    "VerdictHour",
    "VerdictMinute",
    "VerdictRecord",
    "WorkQueue",
    "WorkerNode",
    "WorkerNodeCpus",
    "WorkerNodeGpus",
    "WorkerStats",
]
