"""Where work can run and where files lie."""

from __future__ import annotations

from django.db import models
from django.db.models import Func, Q, Value
from django.db.models.functions import Now

SWITCHES_HELP = "further switches, which win over those of catchall"


class Site(models.Model):
    """A place with queues and storage. Where outputs of tasks are gathered, its role is nucleus."""

    ROLES = ("nucleus", "satellite")

    name = models.CharField(max_length=60, primary_key=True, db_column="site_name")
    role = models.CharField(max_length=16, default="satellite", choices=[(r, r) for r in ROLES])
    tier = models.CharField(max_length=16, blank=True, default="", db_column="tier_level")
    state = models.CharField(max_length=20, default="ACTIVE", help_text="ACTIVE, or why it is not in use")
    data = models.JSONField(default=dict, blank=True, help_text="the original description")
    last_update = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "sites"
        constraints = [
            models.CheckConstraint(condition=Q(role__in=("nucleus", "satellite")), name="sites_role_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """A computing queue (PanDA queue): one kind of slot at one site. Sizes in MB, times in seconds.

    The columns are what brokers read; `data` is the whole description. Names and units are those of the information
    system's records in the JEDI brokerage document.
    """

    STATUSES = ("online", "standby", "offline", "test", "brokeroff", "paused")
    TYPES = ("production", "analysis", "unified")

    name = models.CharField(max_length=128, primary_key=True)
    site_name = models.CharField(max_length=60, help_text="the site that the queue belongs to")
    type = models.CharField(
        max_length=16, default="unified", choices=[(t, t) for t in TYPES], help_text="the jobs it takes; unified: both"
    )
    status = models.CharField(max_length=20, default="online", choices=[(s, s) for s in STATUSES])
    status_reason = models.TextField(blank=True, default="")
    cloud = models.CharField(max_length=50, blank=True, default="")
    grid_type = models.CharField(max_length=16, blank=True, default="GRID", help_text="GRID, hpc, cloud")
    core_count = models.IntegerField(default=1, help_text="cores of one slot; 0 takes any number up to max cores")
    max_memory_mb = models.IntegerField(null=True, blank=True, help_text="memory of one slot in MB; empty: no limit")
    min_memory_mb = models.IntegerField(default=0)
    max_walltime_s = models.IntegerField(null=True, blank=True)
    min_walltime_s = models.IntegerField(default=0)
    work_dir_mb = models.IntegerField(
        null=True, blank=True, help_text="scratch disk of one slot in MB; empty: no limit"
    )
    core_power = models.FloatField(default=10.0, help_text="HS23 per core")
    capability = models.CharField(max_length=16, blank=True, default="ucore")
    max_input_mb = models.IntegerField(
        default=0, help_text="input of one job in MB; 0: no limit, -1: always read directly"
    )
    direct_access_lan = models.BooleanField(default=False, help_text="jobs may read inputs over the local network")
    direct_access_wan = models.BooleanField(default=False, help_text="jobs may read inputs of other sites")
    max_disk_io_kbps = models.FloatField(null=True, blank=True, help_text="kB/s per core; empty: the general limit")
    pledged_cores = models.IntegerField(default=0, help_text="-1 marks an opportunistic queue")
    transferring_limit = models.IntegerField(default=0, help_text="limit on transferring jobs; 0: the general limit")
    transfer_days_high = models.FloatField(
        null=True, blank=True, help_text="time limit of transfers for urgent jobs, in days"
    )
    transfer_days_low = models.FloatField(
        null=True, blank=True, help_text="time limit of transfers for other jobs, in days"
    )
    space_gb = models.FloatField(null=True, blank=True, help_text="free space for outputs, in GB")
    releases = models.JSONField(default=list, blank=True, help_text="ANY, AUTO, or names of releases")
    policy = models.TextField(blank=True, default="", help_text="jobs that are not accepted, as in fairsharepolicy")
    connectivity = models.CharField(max_length=64, blank=True, default="", help_text="of worker nodes: network#stack")
    job_seed = models.CharField(max_length=16, blank=True, default="", help_text="std, es, eshigh, all")
    workflow = models.CharField(max_length=64, blank=True, default="")
    catchall = models.TextField(blank=True, default="")
    params = models.JSONField(default=dict, blank=True, help_text=SWITCHES_HELP)
    storage = models.ForeignKey("StorageEndpoint", models.SET_NULL, null=True, blank=True, help_text="where outputs go")
    data = models.JSONField(
        default=dict, blank=True, help_text="the whole description, as the information system gave it"
    )
    last_update = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "queues"
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=("online", "standby", "offline", "test", "brokeroff", "paused")),
                name="queues_status_known",
            ),
            models.CheckConstraint(
                condition=Q(type__in=("production", "analysis", "unified")), name="queues_type_known"
            ),
            models.CheckConstraint(condition=Q(core_count__gte=0, min_memory_mb__gte=0), name="queues_sizes"),
        ]

    def __str__(self) -> str:
        return self.name


class QueueStatusLog(models.Model):
    """What the status of a queue was, from when to when. Triggers of the table of queues write it, whoever changes a status.

    The row that holds now has no `ended_at`. A status with an end, `until`, makes way for `after` when that time comes.
    """

    id = models.BigAutoField(primary_key=True)
    queue = models.CharField(max_length=128, help_text="name; the queue may be gone")
    old = models.CharField(max_length=20, blank=True, default="", help_text="empty: the queue was new")
    new = models.CharField(max_length=20)
    reason = models.TextField(blank=True, default="")
    by = models.CharField(max_length=128, blank=True, default="", help_text="empty: unknown")
    at = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True, help_text="end of the status; empty: until it is changed")
    after = models.CharField(max_length=20, blank=True, default="", help_text="the status that follows at that time")
    ended_at = models.DateTimeField(null=True, blank=True, help_text="empty: still in force")

    class Meta:
        db_table = "queue_status_log"
        verbose_name = "status of a queue"
        verbose_name_plural = "status history of queues"
        constraints = [
            models.UniqueConstraint(
                fields=["queue"], condition=Q(ended_at__isnull=True), name="queue_status_log_one_holds"
            ),
            models.CheckConstraint(condition=Q(until__isnull=True) | ~Q(after=""), name="queue_status_log_after"),
        ]
        indexes = [
            models.Index(fields=["queue", "-id"], name="queue_status_log_by_queue"),
            models.Index(
                fields=["until"], condition=Q(ended_at__isnull=True, until__isnull=False), name="queue_status_log_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.new} from {self.at:%Y-%m-%d %H:%M}"


class StorageEndpoint(models.Model):
    """A storage element, with the folder under which its files lie when it is a local one. Space in GB; empty is unknown."""

    name = models.CharField(max_length=60, primary_key=True)
    number = models.IntegerField(
        unique=True,
        editable=False,
        db_default=Func(Value("storage_endpoints_number"), function="nextval"),
        help_text="by which pilots name it in their reports",
    )
    site_name = models.CharField(max_length=60)
    type = models.CharField(max_length=32, default="DATADISK")
    token = models.CharField(max_length=60, blank=True, default="", help_text="space token")
    is_tape = models.BooleanField(default=False)
    path = models.TextField(blank=True, default="", help_text="root folder of a local storage element")
    space_free_gb = models.FloatField(null=True, blank=True)
    space_total_gb = models.FloatField(null=True, blank=True)
    space_expired_gb = models.FloatField(null=True, blank=True, help_text="data that may be deleted, in GB")
    space_min_free_gb = models.FloatField(null=True, blank=True, help_text="space that must stay free, in GB")
    space_unavailable_gb = models.FloatField(
        null=True, blank=True, help_text="space that is free but not usable, in GB"
    )
    over_quota = models.BooleanField(default=False)
    states = models.JSONField(
        default=dict,
        blank=True,
        help_text="ON, OFF or TEST by activity: read_lan, write_lan, read_wan, write_wan, delete; a missing one is ON",
    )
    blacklisted_read = models.BooleanField(default=False)
    blacklisted_write = models.BooleanField(default=False)
    data = models.JSONField(default=dict, blank=True, help_text="the original description")
    updated = models.DateTimeField(db_default=Now())
    closed_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="no job is sent to write there until then, since outputs could not be stored",
    )
    closed_reads = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="nor to read there until then: its folder is away"
    )
    closed_why = models.TextField(
        blank=True, db_default="", default="", editable=False, help_text="what the last pilot said of it"
    )

    class Meta:
        db_table = "storage_endpoints"

    def __str__(self) -> str:
        return self.name


class StorageTrouble(models.Model):
    """Jobs that could not store their outputs at an endpoint since `since`, or met its folder away; no other job could since."""

    endpoint = models.OneToOneField(
        StorageEndpoint, models.CASCADE, primary_key=True, db_column="ddm_endpoint_name", related_name="+"
    )
    failures = models.IntegerField()
    since = models.DateTimeField()
    last = models.DateTimeField()
    away = models.BooleanField(default=False, db_default=False, help_text="the last of them met the folder away")

    class Meta:
        db_table = "storage_troubles"

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.failures}"


class StorageFolder(models.Model):
    """What the site itself has seen of the folder of an endpoint. None of a folder that was never there to be seen.

    `away`: what is wrong with it at `looked_at`; "" when it is there.
    """

    endpoint = models.OneToOneField(
        StorageEndpoint, models.CASCADE, primary_key=True, db_column="ddm_endpoint_name", related_name="folder"
    )
    looked_at = models.DateTimeField()
    away = models.TextField(blank=True, default="")
    holds_files = models.BooleanField(help_text="it had something in it: when it is empty, it is away")
    inode = models.BigIntegerField(
        help_text="number of the folder when it was there: a mount point has another one than its disk"
    )

    class Meta:
        db_table = "storage_folders"

    def __str__(self) -> str:
        return f"{self.endpoint_id}: {self.away or 'there'}"


class QueueEndpoint(models.Model):
    """A storage endpoint as a queue uses it. Rows of scope analysis are for analysis jobs, where they differ.

    `order_read` and `order_write`: 1 is the default; empty is not used so.
    """

    SCOPES = ("default", "analysis")

    queue = models.ForeignKey(Queue, models.CASCADE, db_column="panda_site_name", related_name="endpoints")
    endpoint = models.ForeignKey(StorageEndpoint, models.CASCADE, db_column="ddm_endpoint_name", related_name="queues")
    scope = models.CharField(max_length=16, default="default", choices=[(s, s) for s in SCOPES])
    order_read = models.SmallIntegerField(null=True, blank=True, help_text="1: read first; empty: not for reading")
    order_write = models.SmallIntegerField(null=True, blank=True, help_text="1: written first; empty: not for writing")
    is_local = models.BooleanField(default=True, help_text="at the queue's own site")

    class Meta:
        db_table = "panda_ddm_relation"
        verbose_name = "storage of a queue"
        verbose_name_plural = "storages of queues"
        constraints = [
            models.UniqueConstraint(fields=["queue", "endpoint", "scope"], name="panda_ddm_relation_once"),
            models.CheckConstraint(
                condition=Q(order_read__isnull=False) | Q(order_write__isnull=False), name="panda_ddm_relation_used"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint_id} of {self.queue_id}"


class SoftwareTags(models.Model):
    """What a queue publishes of its software and hardware. The row ALL has the tags that hold everywhere."""

    ALL = "ALL"

    queue = models.CharField(max_length=128, primary_key=True, db_column="panda_queue")
    data = models.JSONField(default=dict)
    last_update = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "sw_tags"
        verbose_name_plural = "software tags"

    def __str__(self) -> str:
        return self.queue


class ResourceType(models.Model):
    """A class of jobs by cores and memory a core; the first row that fits counts."""

    name = models.CharField(max_length=56, primary_key=True, db_column="resource_name")
    position = models.IntegerField(default=0)
    min_cores = models.IntegerField(null=True, blank=True, db_column="mincore")
    max_cores = models.IntegerField(null=True, blank=True, db_column="maxcore")
    min_ram_per_core_mb = models.IntegerField(null=True, blank=True, db_column="minrampercore")
    max_ram_per_core_mb = models.IntegerField(null=True, blank=True, db_column="maxrampercore")

    class Meta:
        db_table = "resource_types"
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name
