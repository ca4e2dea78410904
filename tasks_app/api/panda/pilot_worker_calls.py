"""What pilots ask and say beside their reports on jobs: states of jobs, their worker, its node. v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse

from brokerage_app.grid import nodes
from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Fraction, Id, Listed, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.dispatch.worker_moves import pilot_status
from tasks_app.models import Job
from tasks_app.models.worker import INSTANCE_LENGTH

MAX_JOBS = 1000
MOST = 2**31 - 1


class JobIdsParams(Params):
    job_ids = Listed(child=Id(), max_length=MAX_JOBS)


class WorkerStatusParams(Params):
    worker_id = Id()
    harvester_id = Text(max_length=INSTANCE_LENGTH, allow_blank=False)
    status = Text(max_length=80, allow_blank=False, help_text="started, finished or failed")
    site = Text(max_length=128, required=False, allow_null=True, help_text="the queue")
    node_id = Text(max_length=200, required=False, allow_null=True)


class NodeParams(Params):
    """A host, under the names of PanDA."""

    site = Text(max_length=128, allow_blank=False)
    host_name = Text(max_length=128, allow_blank=False)
    cpu_model = Text(max_length=128)
    panda_queue = Text(max_length=128, required=False, allow_null=True)
    n_logical_cpus = Number(required=False, allow_null=True, max_value=MOST)
    n_sockets = Number(required=False, allow_null=True, max_value=MOST)
    cores_per_socket = Number(required=False, allow_null=True, max_value=MOST)
    threads_per_core = Number(required=False, allow_null=True, max_value=MOST)
    cpu_architecture = Text(max_length=32, required=False, allow_null=True)
    cpu_architecture_level = Text(max_length=32, required=False, allow_null=True)
    clock_speed = Fraction(required=False, allow_null=True, min_value=0, help_text="MHz")
    total_memory = Number(required=False, allow_null=True, help_text="MB")
    total_local_disk = Number(required=False, allow_null=True, help_text="GB")


_NODE = {
    "panda_queue": "queue",
    "n_logical_cpus": "logical_cpus",
    "n_sockets": "sockets",
    "cores_per_socket": "cores_per_socket",
    "threads_per_core": "threads_per_core",
    "cpu_architecture": "architecture",
    "cpu_architecture_level": "level",
    "clock_speed": "clock_mhz",
    "total_memory": "memory_mb",
    "total_local_disk": "disk_gb",
}


class GpuParams(Params):
    site = Text(max_length=128, allow_blank=False)
    host_name = Text(max_length=128, allow_blank=False)
    vendor = Text(max_length=128)
    model = Text(max_length=128)
    count = Number(max_value=MOST)
    vram = Number(required=False, allow_null=True, max_value=MOST, help_text="MB")
    architecture = Text(max_length=64, required=False, allow_null=True)
    framework = Text(max_length=20, required=False, allow_null=True)
    framework_version = Text(max_length=20, required=False, allow_null=True)
    driver_version = Text(max_length=20, required=False, allow_null=True)


_GPU = {
    "count": "count",
    "vram": "memory_mb",
    "architecture": "architecture",
    "framework": "framework",
    "framework_version": "framework_version",
    "driver_version": "driver_version",
}


@call("pilot/get_job_status", "GET", Right.PILOT, JobIdsParams)
def get_job_status(ask: Ask) -> HttpResponse:
    """The states of jobs, in the order asked for. Of an unknown job, or one of another queue: `unknown`."""
    wanted = ask.given["job_ids"]
    rows = Job.objects.filter(pk__in=wanted)
    if ask.caller.site:
        rows = rows.filter(site=ask.caller.site)
    found = {number: (status, attempt) for number, status, attempt in rows.values_list("id", "status", "attempt")}
    unknown = ("unknown", None)
    return envelope(
        [
            {"job_id": number, "status": found.get(number, unknown)[0], "attempt_number": found.get(number, unknown)[1]}
            for number in wanted
        ]
    )


@call("pilot/update_worker_status", "POST", Right.PILOT, WorkerStatusParams)
def update_worker_status(ask: Ask) -> HttpResponse:
    """Say how the pilot in a worker is."""
    given = ask.given
    site = ask.caller.site or given.get("site") or ""
    noted = pilot_status(
        given["harvester_id"], given["worker_id"], given["status"], site=site, node=given.get("node_id") or ""
    )
    return (
        envelope()
        if noted
        else refused(f"no instance {given['harvester_id']} has reported the worker {given['worker_id']}")
    )


@call("pilot/update_worker_node", "POST", Right.PILOT, NodeParams)
def update_worker_node(ask: Ask) -> HttpResponse:
    """Say what the host is like on which the pilot runs."""
    given = ask.given
    _may_speak_for(ask, given.get("panda_queue"))
    nodes.saw_node(given["site"], given["host_name"], given["cpu_model"], _about(given, _NODE))
    return envelope()


@call("pilot/update_worker_node_gpu", "POST", Right.PILOT, GpuParams)
def update_worker_node_gpu(ask: Ask) -> HttpResponse:
    """Say which GPUs the host has on which the pilot runs."""
    given = ask.given
    nodes.saw_gpus(given["site"], given["host_name"], given["vendor"], given["model"], _about(given, _GPU))
    return envelope()


def _may_speak_for(ask: Ask, queue: str | None) -> None:
    if ask.caller.site and queue and queue != ask.caller.site:
        raise PermissionDenied(f"this token is for the queue {ask.caller.site}")


def _about(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs) is not None}
