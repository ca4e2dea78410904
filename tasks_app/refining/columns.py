"""The columns of a new task, from its parameters."""

from __future__ import annotations

import json
import uuid
from datetime import datetime

from tasks_app.domain.jumbo_use import use_of
from tasks_app.params.items import PLACEHOLDER
from tasks_app.params.kept_names import named_sites
from tasks_app.params.schedule import moment
from tasks_app.params.schema import TaskParams
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.values import Request

# Fixed for ever: it makes the same payload get the same mark in every installation.
_PAYLOADS = uuid.UUID("7b1d2c86-0d3e-5a51-9a55-6c1e8f6c7a10")
_CLOUD_WIDTH = 10
_CONDITION_WIDTH = 100


def task_columns(request: Request, rule: SplitRule, text: str, trans_path: str) -> dict[str, object]:
    """Values by lower-case column name; `text` is the template of the command line."""
    params = request.params
    return {
        **_identity(request, trans_path),
        **_priorities(request),
        **_sizes(request),
        **_merge(params),
        "splitrule": str(rule),
        "eventservice": event_service_mode(params),
        "usejumbo": use_of(params.whole("nJumboJobs")),
        "requesttype": payload_mark(params, trans_path, text),
        "starttime": request.now,
        "attemptnr": 0,
    }


def _identity(request: Request, trans_path: str) -> dict[str, object]:
    params, parent = request.params, request.parent
    group = params.text("workingGroup")
    return {
        "jeditaskid": request.task_id,
        "taskname": params.task_name,
        "username": request.user,
        "vo": params.vo or request.defaults.vo,
        "prodsourcelabel": params.prod_source_label,
        "tasktype": params.task_type,
        "processingtype": params.text("processingType"),
        "workinggroup": group,
        "countrygroup": params.text("countryGroup"),
        "campaign": params.text("campaign"),
        "ticketid": params.text("ticketID"),
        "ticketsystemtype": params.text("ticketSystemType"),
        "framework": params.text("framework"),
        "container_name": params.text("container_name"),
        "architecture": architecture_text(params),
        "transuses": params.text("transUses"),
        "transhome": params.text("transHome"),
        "transpath": trans_path,
        "cloud": params.text("cloud") or (group if group and len(group) <= _CLOUD_WIDTH else None),
        "site": named_sites(params.text("site")),
        "nucleus": params.text("nucleus"),
        "gshare": params.text("gshare"),
        "reqid": params.whole("reqID") or request.task_id,
        "parent_tid": parent.task_id if parent else request.task_id,
        "termcondition": (params.text("osInfo") or "")[:_CONDITION_WIDTH] or None,
        "ttcrequested": _time(params.text("ttcrTimestamp")),
    }


def _priorities(request: Request) -> dict[str, object]:
    params, defaults = request.params, request.defaults
    usual = defaults.analysis_priority if params.task_type == "anal" else defaults.production_priority
    priority = params.whole("taskPriority", usual)
    goal = params.number("goal")
    current = params.whole("currentPriority", priority)
    least = request.policy.least_priority(request.user, params.text("workingGroup"))
    if least is not None and params.task_type == "anal":
        current = max(current or 0, least)
    return {
        "taskpriority": priority,
        "currentpriority": current,
        "goal": None if goal is None else int(goal * 10),
    }


def _sizes(request: Request) -> dict[str, object]:
    params, defaults = request.params, request.defaults
    cpu_time = params.number("cpuTime")
    ram = params.whole("ramCount")
    return {
        "corecount": params.whole("coreCount", defaults.core_count),
        "ramcount": defaults.ram_count if ram is None else ram,
        "ramunit": params.ram_unit or (defaults.ram_unit if ram is None else "MB"),
        "baseramcount": params.whole("baseRamCount", 0),
        "walltime": params.whole("walltime", 0),
        # Without a unit the value counts as unknown, and scouts find it.
        "walltimeunit": params.text("walltimeUnit"),
        "basewalltime": params.whole("baseWalltime", defaults.base_walltime_s),
        "cputime": None if cpu_time is None else round(cpu_time),
        "cputimeunit": params.text("cpuTimeUnit", None if cpu_time is None else "HS06sPerEvent"),
        "cpuefficiency": params.whole("cpuEfficiency", defaults.cpu_efficiency_percent),
        "outdiskcount": params.whole("outDiskCount", 0),
        "outdiskunit": params.text("outDiskUnit", "kB"),
        "workdiskcount": params.whole("workDiskCount", 0),
        "workdiskunit": params.text("workDiskUnit", "MB"),
        "iointensity": params.whole("ioIntensity"),
        "iointensityunit": params.text("ioIntensityUnit"),
    }


def _merge(params: TaskParams) -> dict[str, object]:
    ram = params.whole("mergeRamCount")
    return {
        "mergecorecount": params.whole("mergeCoreCount"),
        "mergeramcount": ram,
        "mergeramunit": None if ram is None else "MB",
    }


def architecture_text(params: TaskParams) -> str | None:
    """The architecture as submitted: the old text form, or the object as JSON."""
    value = params.architecture
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def event_service_mode(params: TaskParams) -> int:
    """0 none, 1 event service, 2 job cloning, 3 fine-grained processing."""
    if params.text("useJobCloning"):
        return 2
    if params.given("nEventsPerWorker"):
        return 1
    return 3 if params.flag("fineGrainedProc") else 0


def payload_mark(params: TaskParams, trans_path: str, text: str) -> str:
    """32 characters that are the same for tasks with the same payload."""
    build = params.spec("buildSpec") or {}
    sandbox = params.text("fixedSandbox") or build.get("archiveName") or ""
    pieces = (params.text("transUses"), params.text("transHome"), trans_path, PLACEHOLDER.sub("", text), sandbox)
    return uuid.uuid5(_PAYLOADS, "\n".join(piece or "" for piece in pieces)).hex


def _time(text: str | None) -> datetime | None:
    """A time asked for. Tasks of before times were checked may have one that cannot be read: it is ignored."""
    return None if text is None else moment(text)
