from brokerage_app.models.config import GdpConfig
from brokerage_app.models.queue import WorkQueue
from brokerage_app.models.site import Queue, ResourceType, StorageEndpoint
from brokerage_app.models.verdict import VerdictRecord

__all__ = ["GdpConfig", "Queue", "ResourceType", "StorageEndpoint", "VerdictRecord", "WorkQueue"]
