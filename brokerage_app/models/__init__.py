from brokerage_app.models.config import GdpConfig
from brokerage_app.models.queue import GlobalShare, WorkQueue
from brokerage_app.models.site import Queue, ResourceType, StorageEndpoint
from brokerage_app.models.throttle import ThrottleRecord
from brokerage_app.models.verdict import GridSnapshot, VerdictCount, VerdictRecord

__all__ = [
    "GdpConfig",
    "GlobalShare",
    "GridSnapshot",
    "Queue",
    "ResourceType",
    "StorageEndpoint",
    "ThrottleRecord",
    "VerdictCount",
    "VerdictRecord",
    "WorkQueue",
]
