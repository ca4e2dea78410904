"""What of a task decides to which work queue and to which global share it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brokerage_app.policy.criteria import Value


@dataclass(frozen=True, slots=True)
class TaskAttributes:
    """None is what the task does not say. `site_resource_type` is that of the first site that the task is bound to."""

    vo: str | None = None
    prod_source_label: str | None = None
    working_group: str | None = None
    processing_type: str | None = None
    core_count: int | None = None
    site: str | None = None
    event_service: int | None = None
    split_rule: str | None = None
    campaign: str | None = None
    trans_path: str | None = None
    site_resource_type: str | None = None

    def values(self) -> Mapping[str, Value | None]:
        """Under the names that criteria use."""
        return {
            "prodSourceLabel": self.prod_source_label,
            "workingGroup": self.working_group,
            "processingType": self.processing_type,
            "coreCount": self.core_count,
            "site": self.site,
            "eventService": self.event_service,
            "splitRule": self.split_rule,
            "campaign": self.campaign,
        }

    def sentence(self) -> str:
        """The attributes that a task without a queue is told, as JEDI lists them."""
        shown = {"vo": self.vo, "label": self.prod_source_label, **self.values()}
        names = ("vo", "label", "processingType", "workingGroup", "coreCount", "eventService", "splitRule", "campaign")
        return ", ".join(f"{name}={'null' if shown[name] is None else shown[name]}" for name in names)
