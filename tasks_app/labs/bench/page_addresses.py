"""Which pages `bench pages` measures, with which arguments and filters. Pages are found from the configuration of addresses.

A page without arguments is a list. One with arguments is measured for a typical object, and for the largest where that makes
a difference: `things` says what to put in by the start of the address and the name of the argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.db import connection
from django.urls import URLPattern, URLResolver, get_resolver, reverse

NAMESPACE: Final = "dashboard"
NOT_MEASURED: Final[Mapping[str, str]] = {
    "histogram": "needs a file of histograms",
    "job-log": "reads a file",
    "task-do": "a form before an act",
    "job-do": "a form before an act",
    "workflow-do": "a form before an act",
}
WITH_QUERY_ONLY: Final = frozenset({"tasks-bulk", "jobs-bulk", "workflow-packages-bulk"})


@dataclass(frozen=True, slots=True)
class Address:
    """A page to be measured: `page` is its name, `label` says what is in it."""

    page: str
    path: str
    label: str = ""
    is_list: bool = True

    @property
    def name(self) -> str:
        return f"{self.page} {self.label}".strip()


class UnknownPageError(LookupError):
    """A page has arguments that the table of samples does not know."""


Pick = Callable[[], Any]


def _one(statement: str, *values: Any) -> Pick:
    def pick() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            row = cursor.fetchone()
        return None if row is None else row[0]

    return pick


_LARGEST_TASK = _one("SELECT jeditaskid FROM jedi_datasets WHERE type = 'input' ORDER BY nfiles DESC LIMIT 1")
_TYPICAL_TASK = _one(
    """SELECT jeditaskid FROM jedi_datasets JOIN jedi_tasks t USING (jeditaskid)
        WHERE type = 'input' AND t.status = 'running' AND nfilesused > 0
        ORDER BY abs(nfiles - (SELECT avg(nfiles) FROM jedi_datasets WHERE type = 'input' AND nfiles > 0)), 1 LIMIT 1"""
)
_WAITING_TASK = _one("SELECT jeditaskid FROM jedi_tasks WHERE status = 'pending' ORDER BY 1 LIMIT 1")
_TASKS: Final = {"typical": _TYPICAL_TASK, "largest": _LARGEST_TASK, "waiting": _WAITING_TASK}
_JOBS: Final = {
    "running": _one("SELECT pandaid FROM jobs WHERE jobstatus = 'running' ORDER BY pandaid LIMIT 1"),
    "failed": _one("SELECT oldpandaid FROM jedi_job_retry_history ORDER BY id DESC LIMIT 1"),
    "archived": _one("SELECT pandaid FROM jobs_archive ORDER BY pandaid DESC LIMIT 1"),
}
# "" stands for none.
_BUSY_SITE = _one(
    "SELECT computingsite FROM job_counts WHERE computingsite > '' GROUP BY 1 ORDER BY sum(njobs) DESC LIMIT 1"
)
_BUSY_SHARE = _one("SELECT gshare FROM job_counts WHERE gshare > '' GROUP BY 1 ORDER BY sum(njobs) DESC LIMIT 1")
_BUSY_USER = _one(
    "SELECT produsername FROM user_counts WHERE produsername > '' GROUP BY 1 ORDER BY sum(nqueue + nrunning) DESC LIMIT 1"
)

THINGS: Final[Mapping[tuple[str, str], Mapping[str, Pick]]] = {
    ("tasks/", "task_id"): _TASKS,
    ("jobs/", "job_id"): _JOBS,
    ("sites/", "name"): {"busiest": _BUSY_SITE},
    ("shares/", "name"): {"busiest": _BUSY_SHARE},
    ("users/", "name"): {"busiest": _BUSY_USER},
    ("workers/", "worker_id"): {"last": _one("SELECT max(id) FROM harvester_workers")},
    ("agents/", "name"): {"first": _one("SELECT min(name) FROM agents")},
    ("agents/<slug:name>/passes/", "pass_id"): {
        "last": _one("SELECT max(id) FROM agent_passes WHERE agent = (SELECT min(name) FROM agents)")
    },
    ("workflows/", "workflow_id"): {
        "largest": _one("SELECT workflow_id FROM workflow_packages GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1")
    },
    ("workflows/<int:workflow_id>/lines/", "line"): {"first": lambda: "001/001"},
    ("views/", "view_id"): {"none": lambda: 1},
    ("attention/", "item_id"): {"none": lambda: 1},
    ("shift/hand-over/", "handover_id"): {"none": lambda: 1},
    ("queues/", "queue_id"): {"first": _one("SELECT min(queue_id) FROM jedi_work_queue")},
    ("brokerage/", "verdict_id"): {"last": _one("SELECT max(id) FROM verdicts")},
    ("errors/", "number"): {
        "most frequent": _one("SELECT fingerprint_id FROM job_failures GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")
    },
    ("help/codes/", "code"): {"low memory": lambda: "low_memory"},
    ("data/catalogue/", "number"): {"latest": _one("SELECT max(id) FROM catalogue_datasets")},
    ("data/", "dataset_id"): {"largest": _one("SELECT datasetid FROM jedi_datasets ORDER BY nfiles DESC LIMIT 1")},
}
"""By the start of the address and the argument: what is put in for it, by a word that says what it is."""


FILTERS: Final[Mapping[str, Sequence[str]]] = {
    "tasks": (
        "status=running",
        "status=done",
        "user={user}",
        "name=simul",
        "share={share}",
        "created_after={yesterday}",
    ),
    "jobs": (
        "status=failed",
        "status=running",
        "status=activated",
        "task={task}",
        "site={site}",
        "user={user}",
        "error=pilot:1305",
        "site={site}&status=failed",
        "changed_after={yesterday}",
        "node={node}",
    ),
    "errors": ("site={site}", "window=3d"),
    "workers": ("status=running", "status=failed", "site={site}", "harvester=harvester-1"),
    "tasks-bulk": ("command=pause&ids={task}",),
    "jobs-bulk": ("command=kill&ids={job}",),
    "search": ("q={task}", "q=simul"),
}
"""By page: query strings with which a list is measured, beside none. What stands in braces is put in."""


def _filtered(page: str) -> Iterator[str]:
    values = _values() if page in FILTERS else {}
    for query in FILTERS.get(page, ()):
        pairs = [pair.partition("=") for pair in query.split("&")]
        filled = {name: value.format_map(values) for name, _, value in pairs}
        if "None" not in filled.values():
            yield urlencode(filled, safe=",:")


def _values() -> dict[str, str]:
    picks = {
        "user": _BUSY_USER,
        "share": _BUSY_SHARE,
        "site": _BUSY_SITE,
        "task": _TYPICAL_TASK,
        "job": _JOBS["running"],
        "yesterday": _one("SELECT to_char(now() - interval '1 day', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"),
        "node": _one(
            """SELECT modificationhost FROM jobs WHERE jobstatus = 'failed' AND modificationhost > ''
                ORDER BY pandaid DESC LIMIT 1"""
        ),
    }
    return {name: str(pick()) for name, pick in picks.items()}


def addresses() -> list[Address]:
    """Every page of the dashboard, its filters and its samples. Raises UnknownPageError for one with unknown arguments."""
    found: list[Address] = []
    for route, pattern in _patterns():
        name = str(pattern.name)
        if name in NOT_MEASURED:
            continue
        arguments = list(pattern.pattern.converters)
        if not arguments:
            path = reverse(f"{NAMESPACE}:{name}")
            if name not in WITH_QUERY_ONLY:
                found.append(Address(name, path))
            found += [Address(name, f"{path}?{query}", f"({query})") for query in _filtered(name)]
            continue
        for word, values in _samples(route, arguments):
            path = reverse(f"{NAMESPACE}:{name}", kwargs=values)
            found.append(Address(name, path, f"({word})", is_list=False))
    return found


def _samples(route: str, arguments: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments of a page: every sample of the first, with the first sample of the others."""
    known = []
    for argument in arguments:
        before = re.split(rf"<[^<>]*\b{argument}>", route)[0]
        samples = THINGS.get((before, argument))
        if samples is None:
            raise UnknownPageError(
                f"bench pages does not know what to put into {route}: add it to tasks_app/labs/bench/page_addresses.py"
            )
        known.append(samples)
    others = {name: next(iter(samples.values()))() for name, samples in zip(arguments[1:], known[1:], strict=True)}
    for word, pick in known[0].items():
        values = {arguments[0]: pick(), **others}
        if None not in values.values():
            yield word, values


def _patterns() -> Iterator[tuple[str, URLPattern]]:
    """The pages' patterns with their routes from the root."""

    def walk(
        patterns: Sequence[URLPattern | URLResolver], prefix: str, inside: bool
    ) -> Iterator[tuple[str, URLPattern]]:
        for entry in patterns:
            route = prefix + str(entry.pattern)
            if isinstance(entry, URLResolver):
                yield from walk(entry.url_patterns, route, inside or entry.namespace == NAMESPACE)
            elif inside:
                yield route, entry

    return walk(get_resolver(settings.ROOT_URLCONF).url_patterns, "", False)
