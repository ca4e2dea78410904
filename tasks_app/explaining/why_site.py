"""Why a site or a share gets no work: what the brokers said of it for all the tasks that wait."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import floor
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Q, Sum, Value
from django.utils import timezone

from brokerage_app.advice.remedies import PER_CORE
from brokerage_app.brokers.funnel import NUCLEI
from brokerage_app.grid.describing import switches_of
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import JobCount, Queue, VerdictCount
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import CUT_TO_SIZE
from brokerage_app.vocabulary.snapshot import Grid
from tasks_app.domain.states import JOB_OPEN, TASK_FINAL, TaskStatus
from tasks_app.explaining import deciding_again
from tasks_app.explaining.rules.admitting import Proposal, proposals
from tasks_app.explaining.stored_verdicts import explained, gap_of, nearest
from tasks_app.models import Task

RECENT = timedelta(hours=24)
DAYS = 30
TASKS = 20
URGENT = 500
"""The most urgent open tasks whose last decisions are looked at for what they say of a site."""
SETTINGS_TRIED, TRIED = 3, 20
"""Settings that are tried at most, the likeliest first, and of each the most urgent tasks for which it is."""
MOST_ASKED = 1600
"""Queues that brokers ask for one page, so that it takes no more than some 0.3 s: a decision asks them all, a sixth of a
millisecond each, and a try takes two decisions."""
GRID_READ = 5
"""Reading the grid takes as long as so many decisions on it, where it was not read lately."""
PARTS_NAMED = 5
"""Items of a skip that is kept with the name of its queue."""
MOST = 2000
"""The most urgent tasks of a share that are looked at."""

STATUS_OF: Final[Mapping[str, str]] = {
    codes.SITE_OFFLINE: "offline",
    codes.SITE_PAUSED: "paused",
    codes.SITE_STANDBY: "standby",
    codes.SITE_BROKEROFF: "brokeroff",
    codes.SITE_TEST_ONLY: "test",
}
"""The status of a queue that a refusal is for: it holds no more when the queue has another one."""

_OPEN = "t.status <> ALL(%(final)s)"
# Each decision has every site: those of more tasks take too long to read.
_URGENT = f"""(SELECT t.jeditaskid, t.taskname, t.currentpriority,
                      CASE t.status WHEN %(assigning)s THEN %(nuclei)s ELSE 'job' END AS kind
                 FROM jedi_tasks t WHERE {_OPEN}
                ORDER BY t.currentpriority DESC NULLS LAST, t.jeditaskid LIMIT %(urgent)s)"""  # noqa: S608
# The latest verdict of each open task about queues: what it says of one site. That of a task which waits for a nucleus keeps
# what was said of queues beside the nuclei.
_OF_SITE = f"""
SELECT l.jeditaskid, t.taskname, l.share, l.at, s.skip,
       (SELECT r.key FROM jsonb_each(q.reasons) r WHERE r.value ? %(site)s LIMIT 1),
       EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = t.jeditaskid AND j.jobstatus = ANY(%(open)s)
                  AND j.computingsite <> ALL(ARRAY[%(site)s, %(queue)s]))
  FROM {_URGENT} t
 CROSS JOIN LATERAL (SELECT v.* FROM verdicts v WHERE v.jeditaskid = t.jeditaskid AND v.kind = t.kind
                      ORDER BY v.id DESC LIMIT 1) l
 CROSS JOIN LATERAL (
   SELECT CASE l.kind WHEN 'job' THEN l.skipped ELSE l.facts #> '{{queues,skipped}}' END AS skipped,
          CASE l.kind WHEN 'job' THEN l.reasons ELSE l.facts #> '{{queues,reasons}}' END AS reasons) q
 CROSS JOIN LATERAL (SELECT e AS skip FROM jsonb_array_elements(q.skipped) e
                     WHERE e ->> 0 = %(site)s OR starts_with(e ->> 0, %(parts)s)) s
 WHERE l.at > %(since)s
 ORDER BY coalesce(t.currentpriority, 0) DESC, t.jeditaskid
"""  # noqa: S608 - constants of this module
_CHOSEN = f"""
SELECT count(*) FROM {_URGENT} t
 CROSS JOIN LATERAL (SELECT v.chosen, v.at FROM verdicts v WHERE v.jeditaskid = t.jeditaskid AND v.kind = t.kind
                      ORDER BY v.id DESC LIMIT 1) l
 WHERE t.kind = 'job' AND l.at > %(since)s AND EXISTS (
   SELECT 1 FROM jsonb_array_elements(l.chosen) c WHERE c ->> 0 = %(site)s OR starts_with(c ->> 0, %(parts)s))
"""  # noqa: S608 - constants of this module
_OF_SHARE = f"""
SELECT l.jeditaskid, t.taskname, l.code, l.sentence, l.at, l.kind, coalesce(t.currentpriority, 0)
  FROM jedi_tasks t
 CROSS JOIN LATERAL (SELECT v.* FROM verdicts v WHERE v.jeditaskid = t.jeditaskid ORDER BY v.id DESC LIMIT 1) l
 WHERE {_OPEN} AND t.gshare = %(share)s AND l.code <> '' AND l.at > %(since)s
 ORDER BY coalesce(t.currentpriority, 0) DESC, t.jeditaskid LIMIT %(most)s
"""  # noqa: S608


def _jobs(**of: Any) -> dict[str, int]:
    """Open jobs by state, as they were counted last."""
    found = JobCount.objects.filter(**of).values_list("status").annotate(n=Sum("jobs")).order_by("status")
    return {status: n for status, n in found}


def queue_of(name: str) -> Queue | None:
    """The queue of that name, or the one that a pseudo queue `QUEUE/TYPE` is part of."""
    found = {queue.name: queue for queue in Queue.objects.filter(pk__in=[name, name.rpartition("/")[0]])}
    return found.get(name) or found.get(name.rpartition("/")[0])


def _days(now: datetime, *conditions: Q, **of: Any) -> list[dict[str, Any]]:
    """Decisions by day and code, the last days only. Code "" is: chosen."""
    rows = VerdictCount.objects.filter(*conditions, day__gt=now - timedelta(days=DAYS), **of)
    found = rows.values("day", "code").annotate(n=Sum("decisions")).order_by("-day", "-n")
    return [{"day": row["day"], "code": row["code"], "decisions": row["n"]} for row in found]


def why_site(queue: Queue, now: datetime | None = None, *, name: str = "") -> dict[str, Any]:
    """What brokers say of a queue for the tasks that are open: by code with examples, and which came near.

    What was said of a status that the queue has no more is left out; `blocked` are tasks without jobs at other queues.

    `name` is that of one of its pseudo queues, to be told of that alone; else a queue counts once for a task, by the reason
    of the pseudo queue that came furthest.
    """
    now, name = now or timezone.now(), name or queue.name
    values: dict[str, Any] = {"site": name, "parts": f"{name}/", "since": now - RECENT, "final": sorted(TASK_FINAL)}
    values |= {"urgent": URGENT, "assigning": TaskStatus.ASSIGNING.value, "nuclei": NUCLEI}
    values |= {"open": sorted(JOB_OPEN), "queue": queue.name}
    with connection.cursor() as cursor:
        cursor.execute(_OF_SITE, values)
        rows = [(*row[:4], _loaded(row[4]), *row[5:]) for row in cursor.fetchall()]
        # A queue that is online again is offline for nobody: the next decision finds other reasons, or none.
        rows = [row for row in rows if STATUS_OF.get(row[4][1], queue.status) == queue.status]
        if name == queue.name:
            rows = _one_each(rows)
        cursor.execute(_CHOSEN, values)
        chosen = cursor.fetchone()[0]
    by_code: dict[str, dict[int, tuple[Any, ...]]] = {}
    for row in rows:
        by_code.setdefault(row[4][1], {}).setdefault(row[0], row)
    reasons = [
        {
            **explained(code),
            "tasks": len(found),
            "examples": [
                {"task": r[0], "name": r[1], "share": r[2], "queue": r[4][0], "sentence": r[4][2], "at": r[3]}
                for r in list(found.values())[:TASKS]
            ],
        }
        for code, found in sorted(by_code.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]
    tasks = {row[0]: row for row in reversed(rows)}  # of each task the first line
    most, each = tries(Queue.objects.count())
    settings = _settings(queue, rows, most, each, now)
    near = nearest([[row[0], *row[4][1:4]] for row in rows])
    return {
        "site": name,
        "status": queue.status,
        "status_reason": queue.status_reason,
        "jobs": _jobs(site=queue.name),
        "chosen_for": chosen,
        "skipped_for": len({row[0] for row in rows}),
        "reasons": reasons,
        "nearly": [{**one, "at": tasks[one["site"]][3], "task": one.pop("site")} for one in near],
        "looked_at": URGENT,
        "tried": each,
        "settings": [
            {
                "column": one.setting.column,
                "title": one.title,
                "unit": one.setting.unit,
                "now": one.now,
                "value": one.value,
                "tasks": one.tasks,
                "task": one.example,
                "change": one.change(queue.name),
            }
            for one in settings
        ],
        "blocked": [
            {
                "task": r[0],
                "name": r[1],
                "share": r[2],
                "queue": r[4][0],
                "code": r[4][1],
                "sentence": r[4][2],
                "at": r[3],
            }
            for r in [r for r in reversed(tasks.values()) if not r[6]][:TASKS]
        ],
        "days": _days(now, Q(site=name) | Q(site__startswith=f"{name}/"), kind="job"),
    }


def _one_each(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Of each task what was said of the queue as a whole: of the pseudo queues of that reason the nearest.

    Nothing when a pseudo queue was chosen. Decisions of former versions do not keep which one counts: there all of them do.
    """
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        of_task = found.setdefault(row[0], [])
        if row[5] is None and len(row[4]) < PARTS_NAMED:
            of_task.append(row)
        elif row[4][1] == row[5] and (not of_task or _gap(row[4]) < _gap(of_task[0][4])):
            of_task[:] = [row]
    return [row for of_task in found.values() for row in of_task]


def _gap(skip: Sequence[Any]) -> float:
    gap = gap_of(skip[3]) if len(skip) > 3 else None
    return 1.0 if gap is None else gap


def tries(queues: int) -> tuple[int, int]:
    """How many settings are tried on a grid of so many queues, and for how many tasks each."""
    both = max(1, (MOST_ASKED // max(1, queues) - GRID_READ) // 2)
    settings = min(SETTINGS_TRIED, both)
    return settings, min(TRIED, both // settings)


def _settings(queue: Queue, rows: Sequence[tuple[Any, ...]], most: int, each: int, now: datetime) -> list[Proposal]:
    """The settings of a queue that let tasks have it, as deciding again has shown, for the most tasks first: of `most`
    settings, tried for `each` so many tasks.

    Limits of the pseudo queues of one that cuts its slots to size follow from its own columns.
    """
    own = [queue.name] if queue.capability != CUT_TO_SIZE else [queue.name, f"{queue.name}/"]
    of_queue = (
        (row[0], row[4][1], row[4][3] if len(row[4]) > 3 else [])
        for row in rows
        if row[4][0] == queue.name or row[4][0].startswith(tuple(own[1:]))
    )
    cores = max(1, queue.core_count) if PER_CORE in switches_of(queue.catchall, queue.params) else 1
    found = proposals(of_queue, vars(queue), cores)[:most]
    tried = [one.only(list(one.ratios)[:each]) for one in found]
    changes = {one.change(queue.name): list(one.ratios) for one in tried}
    gained = deciding_again.gaining(changes, queue.name, now) if changes else {}
    helping = [one.only(tasks) for one in tried if (tasks := gained[one.change(queue.name)])]
    if any(one.setting.storage for one in helping):
        grid = load_grid(now)
        helping = [_as_it_is(one, grid) for one in helping]
    return sorted(helping, key=lambda one: (-one.tasks, one.setting.column))


def _as_it_is(proposal: Proposal, grid: Grid) -> Proposal:
    """With the space of a storage as it is now: decisions tell that of their time."""
    endpoint = grid.endpoints.get(proposal.setting.column) if proposal.setting.storage else None
    usable = endpoint.usable_gb if endpoint is not None else None
    return proposal if usable is None else replace(proposal, now=floor(usable))


def why_share(share: str, now: datetime | None = None) -> dict[str, Any]:
    """What holds up the tasks of a share: by code, with examples, the most urgent first."""
    now = now or timezone.now()
    values: dict[str, Any] = {"share": share, "since": now - RECENT, "final": sorted(TASK_FINAL), "most": MOST}
    with connection.cursor() as cursor:
        cursor.execute(_OF_SHARE, values)
        rows = cursor.fetchall()
    by_code: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_code.setdefault(row[2], []).append(row)
    tasks = Task.objects.filter(gshare=share).exclude(status__in=TASK_FINAL)
    of_tasks = tasks.order_by().values_list(Value("task"), "status").annotate(n=Count("id"))
    of_jobs = (
        JobCount.objects.filter(share=share).order_by().values_list(Value("job"), "status").annotate(n=Sum("jobs"))
    )
    counted = sorted(of_tasks.union(of_jobs, all=True))
    return {
        "share": share,
        "tasks": {status: n for kind, status, n in counted if kind == "task"},
        "jobs": {status: n for kind, status, n in counted if kind == "job"},
        "waiting": len(rows),
        "reasons": [
            {
                **explained(code),
                "tasks": len(found),
                "examples": [{"task": r[0], "name": r[1], "sentence": r[3], "kind": r[5]} for r in found[:TASKS]],
            }
            for code, found in sorted(by_code.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        ],
        "days": _days(now, share=share),
    }


def share_is_known(share: str) -> bool:
    """Whether any task, or any decision of the last days, is of the share."""
    return Task.objects.filter(gshare=share).exists() or VerdictCount.objects.filter(share=share).exists()


def _loaded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
