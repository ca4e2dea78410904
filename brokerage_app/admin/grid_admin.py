"""Admin of what brokers read beside queues: sites, storages of queues, the network, slots, software; and the statistics."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin

from brokerage_app.formulas.published_software import faults_of_published
from brokerage_app.models import (
    DatasetReplica,
    GridVersion,
    HarvesterSlots,
    JobCount,
    LinkValue,
    NodeGpus,
    PilotCalls,
    Queue,
    QueueActivity,
    QueueEndpoint,
    QueueStatusLog,
    Refreshed,
    ReplicaLookup,
    Sample,
    Site,
    SoftwareTags,
    StorageFolder,
    StorageTrouble,
    UserCount,
    WorkerNode,
    WorkerNodeCpus,
    WorkerNodeGpus,
    WorkerStats,
)
from jedisite.admin.base import AuditedAdmin, LargeTableAdmin, ReadOnlyAdmin
from jedisite.admin.list_filters import days, exact


@admin.register(Site)
class SiteAdmin(AuditedAdmin):
    list_display = ["name", "role", "tier", "state"]
    list_filter = ["role", "state", days("last_update")]
    search_fields = ["name"]
    ordering = ["name"]
    readonly_fields = ["last_update"]
    help_texts = {
        "name": "name used by queues and storage endpoints; it cannot be changed later",
        "role": "nucleus: outputs of tasks may be gathered here; satellite: runs jobs for nuclei",
        "state": "ACTIVE: the nucleus gets tasks; any other value: it gets none",
    }


@admin.register(QueueEndpoint)
class QueueEndpointAdmin(AuditedAdmin):
    list_display = ["queue", "endpoint", "scope", "order_read", "order_write", "is_local"]
    list_filter = ["scope", "is_local"]
    list_select_related = ["queue", "endpoint"]
    search_fields = ["queue__name", "endpoint__name"]
    ordering = ["queue", "scope", "order_write", "order_read"]
    autocomplete_fields = ["queue", "endpoint"]
    help_texts = {
        "scope": "analysis: for analysis jobs, where they use other storage than production",
        "order_read": "1 is read first; empty: jobs do not read from it",
        "order_write": "1 is where outputs go; empty: jobs do not write to it",
        "is_local": "the storage is at the queue's site",
    }


@admin.register(QueueStatusLog)
class QueueStatusLogAdmin(LargeTableAdmin):
    list_display = ["id", "queue", "old", "new", "by", "reason", "at", "until", "ended_at"]
    list_filter = [exact("queue", "queue")]
    search_fields = ["queue__exact", "id__exact"]
    search_help_text = "Queue name, or row number."
    ordering = ["-id"]


@admin.register(StorageTrouble)
class StorageTroubleAdmin(LargeTableAdmin):
    list_display = ["endpoint_id", "failures", "away", "since", "last"]
    search_fields = ["endpoint_id__exact"]
    search_help_text = "Storage endpoint."
    ordering = ["pk"]


@admin.register(StorageFolder)
class StorageFolderAdmin(LargeTableAdmin):
    list_display = ["endpoint_id", "away", "holds_files", "looked_at"]
    search_fields = ["endpoint_id__exact"]
    search_help_text = "Storage endpoint."
    ordering = ["pk"]


@admin.register(LinkValue)
class LinkValueAdmin(AuditedAdmin):
    list_display = ["source", "destination", "key", "value", "at"]
    list_filter = ["key", days("at")]
    search_fields = ["source", "destination"]
    ordering = ["source", "destination", "key"]
    help_texts = {
        "key": "AGIS_closeness; dashb_mbps_1h, dashb_mbps_1d, dashb_mbps_1w; Production Output_queued, Express_queued, ...",
        "value": "closeness: 0 near to 11 far, -1 switches the link off; throughput in MB/s; number of waiting files",
        "at": "brokers use values of the last 60 minutes; for the mover a link stays off until its closeness changes",
    }


@admin.register(HarvesterSlots)
class HarvesterSlotsAdmin(AuditedAdmin):
    list_display = ["queue", "share", "resource_type", "slots", "expires"]
    list_filter = ["share", "resource_type", days("expires")]
    search_fields = ["queue"]
    ordering = ["queue", "share", "resource_type"]
    readonly_fields = ["modified"]


class SoftwareTagsForm(forms.ModelForm):
    """Brokers pass over what they cannot read: here whoever writes it is told."""

    def clean_queue(self) -> str:
        name: str = self.cleaned_data["queue"]
        if name != SoftwareTags.ALL and not Queue.objects.filter(pk=name).exists():
            raise forms.ValidationError(
                f"There is no queue {name}; {SoftwareTags.ALL} stands for tags that are valid everywhere."
            )
        return name

    def clean_data(self) -> Any:
        faults = faults_of_published(self.cleaned_data["data"])
        if faults:
            raise forms.ValidationError([f"{fault}." for fault in faults])
        return self.cleaned_data["data"]


@admin.register(SoftwareTags)
class SoftwareTagsAdmin(AuditedAdmin):
    form = SoftwareTagsForm
    list_display = ["queue", "last_update"]
    list_filter = [days("last_update")]
    search_fields = ["queue"]
    ordering = ["queue"]
    readonly_fields = ["last_update"]
    help_texts = {
        "queue": "a queue with releases AUTO or empty (other queues ignore the tags); ALL: containers by their logical names",
        "data": "a map of lists: cvmfs (any, atlas, nightlies), cmtconfigs (platforms), containers (any, or beginnings of "
        "paths), tags (maps of cmtconfig, project, release, container_name, sources), architectures (maps of type cpu or gpu)",
    }


@admin.register(JobCount)
class JobCountAdmin(ReadOnlyAdmin):
    list_display = ["site", "share", "work_queue_id", "resource_type", "label", "status", "jobs", "cores"]
    list_filter = ["status", "share", "resource_type", "label"]
    search_fields = ["site"]
    ordering = ["site", "share", "resource_type", "status"]


@admin.register(Sample)
class SampleAdmin(LargeTableAdmin):
    list_display = [
        "at",
        "site",
        "share",
        "running_jobs",
        "running_cores",
        "queued_jobs",
        "finished",
        "failed",
        "wasted_core_s",
    ]
    search_fields = ["site__exact"]
    ordering = ["-id"]


@admin.register(UserCount)
class UserCountAdmin(ReadOnlyAdmin):
    list_display = ["site", "share", "user", "queued", "running"]
    list_filter = ["share"]
    search_fields = ["site", "user"]
    ordering = ["site", "share", "user"]


@admin.register(QueueActivity)
class QueueActivityAdmin(ReadOnlyAdmin):
    list_display = ["site", "last_start", "started_per_h", "disk_io_kbps", "pilots_3h", "batch_jobs", "updated"]
    list_filter = [days("last_start")]
    search_fields = ["site"]
    ordering = ["site"]


@admin.register(PilotCalls)
class PilotCallsAdmin(ReadOnlyAdmin):
    list_display = ["site", "hour", "get_job", "update_job"]
    list_filter = [days("hour")]
    search_fields = ["site"]
    ordering = ["-hour", "site"]


@admin.register(WorkerStats)
class WorkerStatsAdmin(ReadOnlyAdmin):
    list_display = ["queue", "harvester", "resource_type", "job_type", "status", "workers", "at"]
    list_filter = ["status", "resource_type", days("at")]
    search_fields = ["queue", "harvester"]
    ordering = ["queue", "harvester", "resource_type", "status"]


@admin.register(WorkerNodeGpus)
class WorkerNodeGpusAdmin(AuditedAdmin):
    list_display = ["queue", "vendor", "model", "memory_mb", "architecture", "framework_version", "driver_version"]
    list_filter = ["vendor"]
    search_fields = ["queue", "model"]
    ordering = ["queue", "vendor", "model"]
    help_texts = {"memory_mb": "MB of one GPU"}


@admin.register(WorkerNodeCpus)
class WorkerNodeCpusAdmin(AuditedAdmin):
    list_display = ["queue", "level", "logical_cpus", "percentage"]
    list_filter = ["level"]
    search_fields = ["queue"]
    ordering = ["queue", "level"]
    help_texts = {"percentage": "of the queue's cores"}


@admin.register(WorkerNode)
class WorkerNodeAdmin(LargeTableAdmin):
    list_display = ["id", "site", "host", "cpu_model", "queue", "logical_cpus", "level", "memory_mb", "last_seen"]
    list_filter = [exact("site", "site")]
    search_fields = ["id__exact", "site__exact"]
    search_help_text = "Row number, or site name."
    ordering = ["-id"]
    ordering_within = {"site": ("site", "host", "cpu_model")}


@admin.register(NodeGpus)
class NodeGpusAdmin(LargeTableAdmin):
    list_display = ["id", "site", "host", "vendor", "model", "count", "memory_mb", "driver_version", "last_seen"]
    list_filter = [exact("site", "site")]
    search_fields = ["id__exact", "site__exact"]
    search_help_text = "Row number, or site name."
    ordering = ["-id"]
    ordering_within = {"site": ("site", "host", "vendor", "model")}


@admin.register(DatasetReplica)
class DatasetReplicaAdmin(LargeTableAdmin):
    list_display = ["id", "dataset", "endpoint", "files", "bytes", "complete", "at"]
    list_filter = [exact("dataset", "dataset")]
    search_fields = ["dataset__exact", "id__exact"]
    search_help_text = "Dataset name, or row number."
    ordering = ["-id"]


@admin.register(ReplicaLookup)
class ReplicaLookupAdmin(LargeTableAdmin):
    list_display = ["dataset", "files", "bytes", "at"]
    list_filter = [exact("dataset", "dataset")]
    search_fields = ["dataset__exact"]
    search_help_text = "Dataset name."
    ordering = ["dataset"]


@admin.register(Refreshed)
class RefreshedAdmin(ReadOnlyAdmin):
    list_display = ["name", "at", "took_ms", "rows"]
    search_fields = ["name"]
    ordering = ["name"]


@admin.register(GridVersion)
class GridVersionAdmin(ReadOnlyAdmin):
    list_display = ["part", "token", "at"]
    search_fields = ["part"]
    ordering = ["part"]
