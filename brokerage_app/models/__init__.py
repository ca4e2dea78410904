from brokerage_app.models.queue import WorkQueue
from brokerage_app.models.site import Queue, ResourceType, StorageEndpoint
from brokerage_app.models.verdict import VerdictRecord

__all__ = ["Queue", "ResourceType", "StorageEndpoint", "VerdictRecord", "WorkQueue"]
