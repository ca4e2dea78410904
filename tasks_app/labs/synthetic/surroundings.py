"""What stands around made-up tasks: users, shares, work queues, decisions of brokers, passes of agents, the audit trail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import transaction

from brokerage_app.brokers import deciding, production_job
from brokerage_app.brokers.funnel import PRODUCTION, order_of
from brokerage_app.labs.made_up_grid import SHARES, synthetic_needs
from brokerage_app.models import GlobalShare, QueueStatusLog, ThrottleRecord, WorkQueue
from brokerage_app.verdicts import records
from brokerage_app.vocabulary.codes import THROTTLED_QUEUED
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.stored import as_json
from jedisite.agents.registry import REGISTRY
from jedisite.database.sql import copy_lines, copy_text, hot_cursor
from jedisite.models import AuditEntry
from tasks_app.labs.synthetic.made_up_plan import ACTIVITIES, USERS
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, Task
from tasks_app.refining.values import Defaults

DECISIONS: Final = 40
"""Decisions that are really made, of tasks that wait and of tasks that run; each is kept for many tasks."""
RUNNING_KEPT: Final = 2000
PASS_HOURS: Final = 24
MOST_PASSES: Final = 1440
CHANGES: Final = 1500
SCOPE: Final = "synthetic"
OWN_LABELS: Final = ("user", "test", "managed")
FILES_READ: Final = 20
"""Files of each input that is still to be looked up."""


def make_users() -> None:
    """Accounts of the owners of tasks; none of them can come in with a password."""
    kind = get_user_model()
    kind.objects.bulk_create(
        [kind(username=name, password=make_password(None)) for name in USERS], ignore_conflicts=True
    )


@transaction.atomic
def make_catalogue(endpoints: Sequence[str]) -> None:
    """In the local catalogue the inputs that tasks have not looked up yet, so that the feeder finds them."""
    unread = Dataset.objects.filter(type="input", status="defined", task__status__in=("staging", "defined"))
    names = list(unread.order_by("id").values_list("name", flat=True))
    found = CatalogueDataset.objects.bulk_create([CatalogueDataset(name=n, scope=SCOPE, open=False) for n in names])
    CatalogueFile.objects.bulk_create(
        [
            CatalogueFile(
                dataset=one,
                lfn=f"{one.name}.{k:03}",
                scope=SCOPE,
                guid=f"{one.id:08x}-{k:04x}",
                size=2 * 10**9,
                adler32=f"{k:08x}",
                events=10_000,
                endpoint=endpoints[n % len(endpoints)],
                url=f"file://localhost/synthetic/{one.name}.{k:03}",
            )
            for n, one in enumerate(found)
            for k in range(FILES_READ)
        ],
        batch_size=5000,
    )


@transaction.atomic
def make_shares() -> dict[str, int]:
    """Shares and work queues, where there are none yet. Returns the id of the work queue of each activity."""
    if not GlobalShare.objects.exists():
        top = [GlobalShare(name="Production", value=75, queue_id=1), GlobalShare(name="Analysis", value=25, queue_id=2)]
        leaves = [name for name in SHARES if name != "User Analysis"]
        leaf = [
            GlobalShare(
                name=name,
                value=max(4, 30 - 4 * n),
                parent_id="Production",
                queue_id=10 + n,
                prod_source_label="managed",
            )
            for n, name in enumerate(leaves)
        ]
        user = GlobalShare(name="User Analysis", value=100, parent_id="Analysis", queue_id=30, prod_source_label="user")
        GlobalShare.objects.bulk_create([*top, *leaf, user])
    if not WorkQueue.objects.exists():
        rows = [
            WorkQueue(
                name=name,
                type="managed",
                vo="atlas",
                share=30,
                order=n,
                criteria="processingType=:kind",
                variables=f"kind:{name}",
                stretchable=1,
            )
            for n, name in enumerate(ACTIVITIES)
        ]
        analysis = WorkQueue(name="analy", type="user", vo="atlas", share=40, order=50)
        # Once there is a queue, a VO without any gets no task: those of this site's own users go on as before.
        vo = Defaults().vo
        own = [
            WorkQueue(name=f"own {label}", type=label, vo=vo, share=100, order=60 + n)
            for n, label in enumerate(OWN_LABELS)
        ]
        WorkQueue.objects.bulk_create([*rows, analysis, *own])
    return dict(WorkQueue.objects.values_list("name", "id"))


def keep_decisions(grid: Grid, now: datetime, seed: int) -> int:
    """Decisions of the production broker on this grid for tasks that wait, and for some that run. Returns their number.

    Tasks that wait have asked for what no queue gives. Of earlier decisions only the reasons are left, as always.
    """
    chance = Random(seed)
    snapshots = records.Snapshots(grid)
    waiting = [_kept(_refused(chance, grid, n), grid) for n in range(DECISIONS)]
    running = [_kept(synthetic_needs(chance, grid), grid) for _ in range(DECISIONS)]
    # All is read before COPY begins: it has the connection for itself.
    lines = list(_verdicts(waiting, running, snapshots.id, now, chance))
    with transaction.atomic(), hot_cursor() as cursor:
        columns = (
            "jeditaskid",
            "first_at",
            "at",
            "repeats",
            "counted",
            "kind",
            "broker",
            "share",
            "code",
            "chosen",
            "skipped",
            "reasons",
            "stopped",
            "sentence",
            "needs",
            "snapshot_id",
        )
        copy_lines(cursor, "verdicts", columns, lines)
    number = 0
    while folded := records.fold():
        number += folded
    return number


def _refused(chance: Random, grid: Grid, number: int) -> TaskNeeds:
    """Needs that no queue, or hardly any, can fulfil."""
    needs = synthetic_needs(chance, grid)
    changes: tuple[dict[str, Any], ...] = (
        {"memory_mb": 9_000 + 1000 * chance.randrange(9)},
        {"cores": 64},
        {"architecture": "ppc64le-el9-gcc13-opt"},
        {"base_walltime_s": 400_000},
        {"work_disk": 500_000},
    )
    return replace(needs, **changes[number % len(changes)])


def _kept(needs: TaskNeeds, grid: Grid) -> dict[str, Any]:
    """A decision as columns of `verdicts`, JSON as text."""
    verdict = deciding.with_blocked(production_job.broker(needs, grid), needs, grid, order_of(PRODUCTION))
    found: dict[str, Any] = {
        "share": needs.share,
        "code": verdict.code,
        "sentence": verdict.sentence(),
        "chosen": [[c.site, c.weight, dict(c.factors)] for c in verdict.chosen],
        "skipped": verdict.kept_skips(),
        "reasons": verdict.compact(),
        "needs": as_json(needs),
        "stopped": [verdict.stopped.code, verdict.stopped.detail] if verdict.stopped is not None else None,
    }
    for name in ("chosen", "skipped", "reasons", "needs", "stopped"):
        found[name] = "\\N" if found[name] is None else copy_text(json.dumps(found[name], default=str))
    return found


def _verdicts(
    waiting: list[dict[str, Any]], running: list[dict[str, Any]], snapshot: int, now: datetime, chance: Random
) -> Iterator[str]:
    """Lines for COPY: two for each task that waits, the older first, one for a task that runs."""
    held = (
        Task.objects.filter(status__in=("pending", "ready", "assigning"))
        .order_by("id")
        .values_list("id", "creation_date")
    )
    refused = [one for one in waiting if one["code"]] or waiting
    for task, created in held:
        age = now - created
        for is_last in (False, True):
            at = now - timedelta(seconds=chance.randrange(600)) if is_last else now - 0.4 * age
            one = refused[chance.randrange(len(refused))]
            yield _verdict(task, one, now - (0.4 if is_last else 0.9) * age, at, snapshot, chance, full=is_last)
    ran = (
        Task.objects.filter(status__in=("running", "scouting"))
        .order_by("-id")[:RUNNING_KEPT]
        .values_list("id", "creation_date")
    )
    for task, created in ran:
        at = now - timedelta(seconds=chance.randrange(3600))
        yield _verdict(
            task, running[chance.randrange(len(running))], created, max(at, created), snapshot, chance, full=True
        )


def _verdict(
    task: int, one: Mapping[str, Any], first: datetime, at: datetime, snapshot: int, chance: Random, *, full: bool
) -> str:
    values = (
        task,
        first,
        max(at, first),
        1 + chance.randrange(90),
        0,
        "job",
        "production",
        copy_text(one["share"]),
        one["code"],
        one["chosen"],
        one["skipped"] if full else "[]",
        one["reasons"],
        one["stopped"],
        copy_text(one["sentence"]),
        one["needs"] if full else "\\N",
        snapshot,
    )
    return "\t".join(map(str, values)) + "\n"


def keep_throttling(now: datetime) -> None:
    """A decision of the throttle for each share; one of them holds its tasks back."""
    rows = [
        ThrottleRecord(
            vo="atlas",
            label="user" if name == "User Analysis" else "managed",
            queue=f"share:{name}",
            at=now,
            since=now - timedelta(hours=2),
            passed=n != 3,
            code=THROTTLED_QUEUED if n == 3 else "",
            detail="9120 jobs are queued and 2900 run: the ratio of 3.1 is above 2" if n == 3 else "",
            lines=["stops: enough jobs are queued" if n == 3 else "passes: the queue is not full"],
        )
        for n, name in enumerate(SHARES)
    ]
    ThrottleRecord.objects.bulk_create(rows, ignore_conflicts=True)


_PASSES = """
INSERT INTO agent_passes (agent, started_at, duration_s, items, note, error, host)
SELECT %(name)s, %(now)s - i * %(every)s * interval '1 second', 0.02 + 2.5 * power(mod(d.dice, 1000) / 1000.0, 6),
       CASE WHEN mod(d.dice >> 10, 3) = 0 THEN 0 ELSE mod(d.dice >> 12, 400) END, '',
       CASE WHEN mod(d.dice >> 20, 400) = 0 THEN 'OperationalError: canceling statement due to lock timeout' ELSE '' END,
       'node' || 1 + mod(d.dice >> 30, 3)
  FROM generate_series(%(passes)s, 1, -1) i
 CROSS JOIN LATERAL (SELECT hashint8extended(i, hashtext(%(name)s)) & 9223372036854775807 AS dice) d
"""
_LAST_PASS = """
UPDATE agents a SET last_started_at = p.started_at, last_ended_at = p.started_at + p.duration_s * interval '1 second',
       last_duration_s = p.duration_s, last_items = p.items, last_recorded_at = p.started_at, passes = passes + %(passes)s
  FROM (SELECT * FROM agent_passes WHERE agent = %(name)s ORDER BY id DESC LIMIT 1) p WHERE a.name = %(name)s
"""


def keep_passes(now: datetime, most: int) -> None:
    """Passes of every agent over the last day, one a minute, at most so many."""
    with transaction.atomic(), hot_cursor() as cursor:
        for name, spec in REGISTRY.items():
            every = max(60.0, spec.period_s)
            values = {"name": name, "now": now, "every": every, "passes": min(most, int(PASS_HOURS * 3600 / every))}
            cursor.execute(_PASSES, values)
            cursor.execute(_LAST_PASS, values)


def keep_outages(queues: Sequence[str], now: datetime, seed: int) -> None:
    """Times in the last three days when queues took no work."""
    chance = Random(seed)
    reasons = ("downtime: storage is being moved", "test jobs fail", "power cut")
    rows = []
    for queue in chance.sample(list(queues), len(queues) // 4):
        began = now - timedelta(hours=4 + 66 * chance.random())
        ended = began + timedelta(hours=0.5 + 3 * chance.random())
        rows.append(
            QueueStatusLog(
                queue=queue,
                old="online",
                new=chance.choice(("offline", "brokeroff", "test")),
                reason=chance.choice(reasons),
                by="operator",
                at=began,
                ended_at=ended,
            )
        )
    QueueStatusLog.objects.bulk_create(rows)


def keep_changes(queues: Sequence[str], now: datetime, seed: int) -> None:
    """The audit trail of three days: commands to tasks, edits of queues, shares and agents."""
    chance = Random(seed)
    tasks = list(Task.objects.order_by("-id").values_list("id", "user")[: 4 * CHANGES : 4])
    entries = []
    for number in range(min(CHANGES, 2 * len(tasks))):
        task, user = tasks[chance.randrange(len(tasks))]
        kinds: tuple[tuple[str, str, str, str | int, str], ...] = (
            (user, "retry", "task", task, "the storage is back"),
            (user, "abort", "task", task, "wrong configuration"),
            ("operator", "pause", "task", task, "floods the storage with small files"),
            ("operator", "queue.change", "queue", chance.choice(queues), "site is in downtime until the evening"),
            ("operator", "share.change", "globalshare", chance.choice(SHARES), "campaign has begun"),
            ("operator", "agent.pause", "agent", chance.choice(sorted(REGISTRY)), "database is being moved"),
        )
        actor, action, kind, key, reason = kinds[chance.randrange(len(kinds)) if number % 2 else 0]
        at = now - timedelta(days=3) * (1 - number / CHANGES)
        entries.append(
            AuditEntry(at=at, actor=actor, action=action, object_type=kind, object_id=str(key)[:64], reason=reason)
        )
    AuditEntry.objects.bulk_create(entries, batch_size=500)
