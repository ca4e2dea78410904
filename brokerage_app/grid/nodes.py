"""Stores what pilots report about the hosts on which they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from brokerage_app.models import NodeGpus, WorkerNode


def saw_node(site: str, host: str, cpu_model: str, about: Mapping[str, Any]) -> None:
    """Store the properties of a host; `about` has names of WorkerNode. Properties that are not given stay as they were."""
    WorkerNode.objects.update_or_create(
        site=site, host=host, cpu_model=cpu_model, defaults={**about, "last_seen": timezone.now()}
    )


def saw_gpus(site: str, host: str, vendor: str, model: str, about: Mapping[str, Any]) -> None:
    """The same for GPUs of one model in a host; `about` by names of NodeGpus."""
    NodeGpus.objects.update_or_create(
        site=site, host=host, vendor=vendor, model=model, defaults={**about, "last_seen": timezone.now()}
    )
