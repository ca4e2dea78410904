"""PanDA's v1 calls of harvester and other services that start pilots. Names and formats are harvester's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers

from brokerage_app.models import HarvesterSlots, Queue
from jedisite.identity.callers import Right
from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line, on_one_line
from jedisite.web.problems import strict_json
from tasks_app.api.panda.call_params import Id, JsonList, JsonObject, Listed, Name, Number, Params, Text
from tasks_app.api.panda.calls import Ask, call
from tasks_app.api.panda.wire import BadCallError, envelope, refused, text
from tasks_app.api.panda.worker_news import news_of, time_of
from tasks_app.dispatch import harvester_commands, harvester_instances
from tasks_app.dispatch import worker_moves as workers
from tasks_app.models.worker import INSTANCE_LENGTH
from tasks_app.params.faults import shown

MAX_ROWS = 5000
"""Workers, dialogs or metrics in one call."""
MAX_COMMANDS = 1000
MAX_COUNTS = 2000
"""Combinations of label, resource type and status in one report."""


class InstanceParams(Params):
    harvester_id = Name(max_length=INSTANCE_LENGTH, allow_blank=False, help_text="name of the instance")


class HeartbeatParams(InstanceParams):
    # A serialiser has an attribute `data` of its own, which the field stands beside.
    data = JsonObject(  # type: ignore[assignment]
        required=False, allow_null=True, help_text="startTime, sw_version, commit_stamp"
    )


class WorkersParams(InstanceParams):
    workers = JsonList(help_text=f"up to {MAX_ROWS} objects with the attributes of harvester's workers")


class StatisticsParams(Params):
    harvester_id = Name(max_length=INSTANCE_LENGTH, required=False, help_text="name of the instance; or harvesterID")
    panda_queue = Text(max_length=128, required=False, help_text="the queue; or siteName")
    statistics = JsonObject(required=False, help_text="{label: {resource type: {status: number}}}; or paramsList")
    harvesterID = Name(max_length=INSTANCE_LENGTH, required=False)
    siteName = Text(max_length=128, required=False)
    paramsList = JsonObject(required=False)


class AcquireCommandsParams(InstanceParams):
    n_commands = Number(min_value=0, max_value=MAX_COMMANDS)


class AcknowledgeParams(Params):
    command_ids = Listed(child=Id(), max_length=MAX_COMMANDS)


class DialogsParams(InstanceParams):
    dialogs = JsonList(help_text="{diagID, moduleName, identifier, creationTime, messageLevel, diagMessage}")


class MetricsParams(InstanceParams):
    metrics = JsonList(help_text="[time, host, JSON text] each")


class SweepParams(Params):
    panda_queue = Text(max_length=128, allow_blank=False)
    status_list = Listed(child=Text(max_length=80), required=False, allow_null=True, max_length=50)
    ce_list = Listed(child=Text(max_length=128), required=False, allow_null=True, max_length=500)
    submission_host_list = Listed(child=Text(max_length=128), required=False, allow_null=True, max_length=500)


class SlotsParams(Params):
    panda_queue = Text(max_length=128, allow_blank=False)
    slots = Number(min_value=-(2**31), max_value=2**31 - 1)
    global_share = Text(max_length=32, required=False, allow_null=True, help_text="any when it is absent")
    resource_type = Text(max_length=56, required=False, allow_null=True, help_text="any when it is absent")
    expiration_date = Text(max_length=40, required=False, allow_null=True, help_text="YYYY-mm-dd HH:MM:SS, UTC")


Answer = Callable[[Ask], HttpResponse]


def _of_its_owner(answer: Answer) -> Answer:
    """For calls about an instance: refuses callers who do not own it."""

    @wraps(answer)
    def guarded(ask: Ask) -> HttpResponse:
        try:
            return answer(ask)
        except harvester_instances.ForeignInstanceError as exc:
            raise PermissionDenied(str(exc)) from exc

    return guarded


@call("harvester/heartbeat", "POST", Right.WORKERS, HeartbeatParams)
@_of_its_owner
def heartbeat(ask: Ask) -> HttpResponse:
    """Report that an instance is alive."""
    about = ask.given.get("data") or {}
    harvester_instances.check_in(
        ask.given["harvester_id"],
        by=ask.caller.name,
        host=_host(ask),
        started=time_of(about, "startTime"),
        version=on_one_line(text(about, "sw_version", 50)),
        commit=on_one_line(text(about, "commit_stamp", 100)),
    )
    return envelope()


def _host(ask: Ask) -> str:
    return str(ask.request.META.get("REMOTE_HOST") or ask.request.META.get("REMOTE_ADDR", ""))[:100]


@call(
    "harvester/update_workers",
    "POST",
    Right.WORKERS,
    WorkersParams,
    data=serializers.ListField(child=serializers.BooleanField()),
)
@_of_its_owner
def update_workers(ask: Ask) -> HttpResponse:
    """Report on workers.

    Each is judged alone: the answer says of each, in their order, whether it was taken; the message says what was wrong.
    """
    items = _rows(ask.given["workers"], "workers")
    news, faults = [], {}
    for n, item in enumerate(items):
        try:
            news.append(news_of(_object(item, f"workers[{n}]"), ask.caller.site))
        except BadCallError as exc:
            faults[n] = f"workers[{n}]: {exc}"
    workers.update_workers(ask.given["harvester_id"], news, by=ask.caller.name)
    return envelope([n not in faults for n in range(len(items))], message="; ".join(list(faults.values())[:5]))


@call("harvester/report_worker_statistics", "POST", Right.WORKERS, StatisticsParams)
@_of_its_owner
def report_worker_statistics(ask: Ask) -> HttpResponse:
    """Report the number of workers of a queue in each state. Brokers use it."""
    harvester = _either(ask.given, "harvester_id", "harvesterID")
    queue = _either(ask.given, "panda_queue", "siteName")
    counts = _counts(_either(ask.given, "statistics", "paramsList", empty=True))
    if ask.caller.site and ask.caller.site != queue:
        raise PermissionDenied(f"this token is for the queue {ask.caller.site}")
    if not Queue.objects.filter(pk=queue).exists():
        return refused(f"panda_queue: there is no queue {queue}")
    harvester_instances.report_statistics(harvester, queue, counts, by=ask.caller.name)
    return envelope()


def _either(given: Mapping[str, Any], name: str, other: str, *, empty: bool = False) -> Any:
    """A parameter under the name of today or that of older releases of harvester."""
    value = given.get(name, given.get(other))
    if value is None or (not value and not empty):
        raise BadCallError(f"{name} is missing")
    return value


def _counts(said: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    found = {}
    for label, by_type in said.items():
        for kind, by_status in _object(by_type, f"statistics.{label}").items():
            for status, workers_ in _object(by_status, f"statistics.{label}.{kind}").items():
                where = f"statistics.{label}.{kind}.{status}"
                if isinstance(workers_, bool) or not isinstance(workers_, int) or not 0 <= workers_ < 2**31:
                    raise BadCallError(f"{where[:200]} must be a number from 0 to {2**31 - 1}")
                if len(label) > 20 or len(kind) > 56 or len(status) > 80:
                    raise BadCallError(f"{where[:200]}: a label has up to 20 characters, a type 56, a status 80")
                if not is_one_line(label + kind + status):
                    raise BadCallError(f"{shown(where[:200])} {NOT_ONE_LINE}")
                found[label, kind, status] = workers_
    if len(found) > MAX_COUNTS:
        raise BadCallError(f"statistics has {len(found)} counts; the limit is {MAX_COUNTS}")
    return found


@call("harvester/get_worker_statistics", "GET", Right.SITE_DATA, data=OpenApiTypes.OBJECT)
def get_worker_statistics(ask: Ask) -> HttpResponse:
    """Numbers of workers that instances reported in the last hour.

    {queue: {instance: {label: {resource type: {status: number}}}}}
    """
    return envelope(harvester_instances.statistics())


@call("harvester/get_current_worker_id", "GET", Right.WORKERS, InstanceParams, data=OpenApiTypes.INT)
@_of_its_owner
def get_current_worker_id(ask: Ask) -> HttpResponse:
    """The highest worker number of an instance; new workers get higher numbers."""
    return envelope(harvester_instances.highest_worker(ask.given["harvester_id"], by=ask.caller.name))


@call("harvester/acquire_commands", "POST", Right.WORKERS, AcquireCommandsParams)
@_of_its_owner
def acquire_commands(ask: Ask) -> HttpResponse:
    """Fetch commands for an instance."""
    found = harvester_commands.acquire(ask.given["harvester_id"], ask.given["n_commands"], by=ask.caller.name)
    return envelope(
        [
            {
                "command_id": number,
                "command": command,
                "params": json.loads(params),
                "ack_requested": ack,
                "creation_date": made.replace(tzinfo=None).isoformat(),
            }
            for number, command, params, ack, made in found
        ]
    )


@call("harvester/acknowledge_commands", "POST", Right.WORKERS, AcknowledgeParams)
def acknowledge_commands(ask: Ask) -> HttpResponse:
    """Report that commands were carried out."""
    harvester_commands.acknowledge(ask.given["command_ids"], by=ask.caller.name)
    return envelope()


@call("harvester/add_dialogs", "POST", Right.WORKERS, DialogsParams)
@_of_its_owner
def add_dialogs(ask: Ask) -> HttpResponse:
    """Store lines of an instance's log for people to read."""
    rows = [_dialog(_object(item, f"dialogs[{n}]"), n) for n, item in enumerate(_rows(ask.given["dialogs"], "dialogs"))]
    harvester_instances.add_dialogs(ask.given["harvester_id"], rows, by=ask.caller.name)
    return envelope()


def _dialog(said: Mapping[str, Any], n: int) -> dict[str, Any]:
    at = time_of(said, "creationTime")
    number = said.get("diagID")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
        raise BadCallError(f"dialogs[{n}].diagID must be a number from 0 to {2**63 - 1}")
    return {
        "number": number,
        "module": text(said, "moduleName", 100),
        "subject": text(said, "identifier", 100),
        "at": at.isoformat() if at else None,
        "level": text(said, "messageLevel", 10),
        "message": text(said, "diagMessage", 500),
    }


@call("harvester/update_service_metrics", "POST", Right.WORKERS, MetricsParams)
@_of_its_owner
def update_service_metrics(ask: Ask) -> HttpResponse:
    """Store what an instance measures on its hosts."""
    rows = [_metrics(item, f"metrics[{n}]") for n, item in enumerate(_rows(ask.given["metrics"], "metrics"))]
    harvester_instances.add_metrics(ask.given["harvester_id"], rows, by=ask.caller.name)
    return envelope()


def _metrics(said: Any, where: str) -> dict[str, Any]:
    if not isinstance(said, list) or len(said) != 3 or not isinstance(said[1], str) or len(said[1]) > 100:
        raise BadCallError(f"{where} must be a list of a time, a host, and a JSON object or its text")
    at, measured = time_of({"time": said[0]}, "time"), said[2]
    if at is None:
        raise BadCallError(f"{where}: the time must be YYYY-mm-dd HH:MM:SS")
    if isinstance(measured, str):
        try:
            measured = strict_json(measured.encode())
        except ValueError as exc:
            raise BadCallError(f"{where}: the metrics are not valid JSON: {exc}") from exc
    return {"host": said[1], "at": at.isoformat(), "metrics": _object(measured, where)}


@call("harvester/add_sweep_command", "POST", Right.STEER, SweepParams)
def add_sweep_command(ask: Ask) -> HttpResponse:
    """Have the workers of a queue killed by the instances that serve it; also only some states, elements or hosts."""
    given = ask.given
    params = {
        "computingSite": [given["panda_queue"]],
        "status": given.get("status_list") or "ALL",
        "computingElement": given.get("ce_list") or "ALL",
        "submissionHost": given.get("submission_host_list") or "ALL",
    }
    told = harvester_commands.sweep(given["panda_queue"], params, by=ask.caller.name)
    if not told:
        return refused(f"no instance has reported workers of the queue {given['panda_queue']} in the last day")
    return envelope(message=f"told to {', '.join(told)}")


@call("harvester/add_target_slots", "POST", Right.STEER, SlotsParams)
def add_target_slots(ask: Ask) -> HttpResponse:
    """Set the number of slots of a queue until a time. Brokers use it."""
    given = ask.given
    expires = time_of(given, "expiration_date")
    if given.get("expiration_date") and (expires is None or expires < timezone.now()):
        raise BadCallError("expiration_date must be in the future, as YYYY-mm-dd HH:MM:SS")
    if not Queue.objects.filter(pk=given["panda_queue"]).exists():
        return refused(f"panda_queue: there is no queue {given['panda_queue']}")
    HarvesterSlots.objects.update_or_create(
        queue=given["panda_queue"],
        share=given.get("global_share") or None,
        resource_type=given.get("resource_type") or None,
        defaults={"slots": given["slots"], "expires": expires},
    )
    return envelope()


def _rows(items: list[Any], name: str) -> list[Any]:
    if len(items) > MAX_ROWS:
        raise BadCallError(f"{name} has {len(items)} entries; the limit is {MAX_ROWS}")
    return items


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadCallError(f"{where[:200]} must be a JSON object")
    return value
