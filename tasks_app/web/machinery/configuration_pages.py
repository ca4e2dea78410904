"""The page of the configuration: every parameter with its default, what is set here, and rows that are not in force."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from brokerage_app.grid import configured, configured_names
from brokerage_app.policy.configuration import Configuration, Row
from brokerage_app.policy.parameter import Parameter
from brokerage_app.policy.parameters import PARAMETERS, parse_key
from jedisite.identity.callers import Right, needs
from tasks_app.web.lists.misspelt import takes

TITLES: Final[Mapping[str, str]] = {
    "brokerage": "Choice of broker",
    "taskbrokerage": "Choice of nucleus",
    "jobbroker": "Choice of sites, production",
    "core": "Whole system",
    "anal_jobbroker": "Choice of sites, analysis",
    "prio_mgr": "Caps of users and groups",
    "analy_eval": "Classes of users",
    "prod_job_throttler": "Throttle, production and others",
    "anal_job_throttler": "Throttle, analysis (labels user and panda)",
    "rebroker": "Rebrokerage",
    "job_timeout": "Time-outs of jobs",
    "watcher": "Heartbeats",
    "watchdog": "Watchdogs of tasks",
    "anal_watchdog": "Data in transfer",
    "user_output": "User outputs",
    "task_withholder": "Withholding tasks",
    "queue_filler": "Filling empty queues",
    "mover": "Transfers",
    "jobgen": "Job generation",
    "dbproxy": "Scouts, tasks and priorities",
    "jobdispatch": "Job dispatch",
    "taskrefiner": "Refining",
    "task_setup": "Outputs",
    "retry_task": "Retries",
    "jumbo_dog": "Jumbo jobs",
}
"""Headings of the components, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Line:
    """A parameter with the rows that set it."""

    parameter: Parameter
    rows: tuple[Row, ...]


def lines(found: Configuration, bad: Collection[Row]) -> Iterator[Line]:
    """All parameters with what sets them; rows that are not in force (`bad`) are left out."""
    by_parameter: dict[tuple[str, str], list[Row]] = {}
    for row in found.rows:
        parsed = parse_key(row.component, row.key) if row not in bad else None
        if parsed is not None:
            by_parameter.setdefault((parsed[0].component, parsed[0].key), []).append(row)
    for parameter in PARAMETERS:
        yield Line(parameter, tuple(by_parameter.get((parameter.component, parameter.key), ())))


@needs(Right.READ)
@require_safe
@takes()
def configuration_page(request: HttpRequest) -> HttpResponse:
    found = configured.read()
    bad = dict(configured_names.faults(found))
    all_lines = list(lines(found, bad))
    groups = [(title, name, [x for x in all_lines if x.parameter.component == name]) for name, title in TITLES.items()]
    context = {
        "section": "help",
        "groups": groups,
        "faults": list(bad.items()),
        "set_here": sum(len(line.rows) for line in all_lines),
        "may_set": request.user.has_perm("brokerage_app.add_gdpconfig"),
        "add_url": reverse("admin:brokerage_app_gdpconfig_add"),
        "cache_s": int(configured.CACHE_S),
    }
    return render(request, "tasks_app/configuration.html", context)
