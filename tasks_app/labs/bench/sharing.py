"""bench shares: tasks to work queues and global shares, CPU to both, against PostgreSQL doing the same grouping.

The criteria are the same on both sides: parsed once and asked in Python, or as one CASE of a statement.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Case, Count, IntegerField, Q, Value, When

from brokerage_app.grid.criteria_sql import to_q
from brokerage_app.policy.attributes import TaskAttributes
from brokerage_app.policy.criteria_parser import parse
from brokerage_app.policy.division import distribute
from brokerage_app.policy.placement import Wish, place
from brokerage_app.policy.shares import Share, ShareTree
from brokerage_app.policy.workqueues import QueueRow, WorkQueues
from tasks_app.counts import line_order
from tasks_app.labs.bench.database import Place, settle
from tasks_app.labs.bench.measuring import Result, Target, in_turn
from tasks_app.models import Task

RAW, QUEUES, PLACES = "CASE of a statement", "tasks to work queues", "tasks to work queues and shares"
FIELDS = {
    "prodSourceLabel": "prod_source_label",
    "workingGroup": "working_group",
    "processingType": "processing_type",
    "coreCount": "core_count",
    "site": "site",
    "eventService": "event_service",
    "splitRule": "split_rule",
    "campaign": "campaign",
}
VO, LABEL = "lab", "managed"
DIVISIONS = 20
_TASKS = """
INSERT INTO jedi_tasks (jeditaskid, taskname, status, username, vo, prodsourcelabel, processingtype, workinggroup, campaign,
       corecount, eventservice, splitrule)
SELECT n, 'bench.' || n, 'ready', 'bench', 'lab', 'managed', 'type' || n %% 60, CASE WHEN n %% 3 > 0 THEN 'GP_' || n %% 7 END,
       'mc' || n %% 5, 1 + 7 * (n %% 2), 0, 'NF=1'
  FROM generate_series(1, %s::int) n
"""
_JOBS = """
INSERT INTO jobs (pandaid, jobstatus, computingsite, gshare, corecount)
SELECT n, 'running', 'BENCH_00', 'leaf ' || n %% 200, 1 + n %% 8 FROM generate_series(1, %s::int) n
"""


def work_queues(number: int) -> list[QueueRow]:
    """Queues of three kinds of criteria and, last, one that takes the rest; a fifth of them in partitions."""
    kinds = (
        "processingType IN (:p,:q) AND coreCount > 1",
        "workingGroup LIKE :g AND processingType = :p",
        "(campaign = :c OR workingGroup IS NULL) AND processingType = :q",
    )
    rows = [
        QueueRow(
            n,
            f"queue {n}",
            LABEL,
            VO,
            share=1 + n % 9,
            order=n,
            criteria=kinds[n % 3],
            variables=f"p:type{n},q:type{(n * 7) % 60},g:GP_{n % 7}%,c:mc{n % 5}",
            stretchable=n % 4 == 0,
            partition_id=number + 1 if n % 5 == 0 else None,
        )
        for n in range(1, number)
    ]
    partition = QueueRow(number + 1, "partition", LABEL, VO, share=20, order=number // 2, partition_id=-1)
    return [*rows, partition, QueueRow(number, "rest", LABEL, VO, share=5, order=10_000)]


def shares(leaves: int) -> list[Share]:
    """A tree of three levels whose leaves take one processing type each, the last ones any."""
    top = [Share(f"top {n}", 10 + n) for n in range(4)]
    middle = [Share(f"middle {n}", 1 + n, f"top {n % 4}") for n in range(16)]
    found = [
        Share(f"leaf {n}", 1 + n % 9, f"middle {n % 16}", processing_type=f"type{n}$" if n < leaves - 16 else None)
        for n in range(leaves)
    ]
    return [*top, *middle, *found]


def run(place_: Place, sizes: Sequence[int], rounds: int, say: Callable[[str], None]) -> Result:
    """Raises RuntimeError when Python and the statement do not put the same number of tasks into each queue."""
    number, queue_count, leaf_count, jobs = [*sizes, *(20_000, 50, 200, 50_000)[len(sizes) :]]
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, [number])
        cursor.execute(_JOBS, [jobs])
    settle("jedi_tasks", "jobs")
    rows = work_queues(queue_count)
    queues, tree = WorkQueues(rows), ShareTree(shares(leaf_count))
    tasks = [
        TaskAttributes(*values)
        for values in Task.objects.order_by("id").values_list(
            "vo",
            "prod_source_label",
            "working_group",
            "processing_type",
            "core_count",
            "site",
            "event_service",
            "split_rule",
            "campaign",
            "trans_path",
        )
    ]
    grouped = _statement(queues)
    by_statement = {row["queue"]: row["tasks"] for row in grouped}
    by_us = Counter(found.queue.id if (found := queues.choose(task)).queue else None for task in tasks)
    if dict(by_us) != by_statement:
        raise RuntimeError(f"the queues of the tasks differ: {dict(by_us)} here, {by_statement} by the statement")

    def raw() -> float:
        return _rate(number, lambda: list(_statement(queues)))

    def to_queues() -> float:
        return _rate(number, lambda: [queues.choose(task) for task in tasks])

    def to_places() -> float:
        wish = Wish()
        return _rate(number, lambda: [place(task, wish, queues, tree) for task in tasks])

    rates = in_turn({RAW: raw, QUEUES: to_queues, PLACES: to_places}, rounds, say)
    (executing, queued), working = line_order.powers_of_shares(), {row.id for row in rows if row.id % 2}
    began = time.perf_counter()
    for _ in range(DIVISIONS):
        distribute(10_000, rows, working)
        ShareTree(shares(leaf_count)).serving_order(executing, queued)
    divide_ms = (time.perf_counter() - began) / DIVISIONS * 1000
    began = time.perf_counter()
    line_order.powers_of_shares()
    executing_ms = (time.perf_counter() - began) * 1000
    result = Result(
        "shares",
        "tasks/s",
        rates,
        QUEUES,
        RAW,
        {"tasks": number, "work_queues": queue_count, "leaves": leaf_count, "running_jobs": jobs},
    )
    result.more = {"divide_ms": round(divide_ms, 2), "executing_ms": round(executing_ms, 1)}
    result.targets += [
        Target("tasks to work queues, a second", rates.median(QUEUES), 10_000, 30_000),
        Target("tasks to work queues / CASE of a statement", rates.ratio(QUEUES, RAW), 0.1, 0.5),
        Target("tasks to work queues and shares, a second", rates.median(PLACES), 2000, 10_000),
        Target("ms to divide CPU among all queues and shares", divide_ms, 50, 10, at_most=True),
        Target("ms to sum what the shares execute", executing_ms, 500, 100, at_most=True),
    ]
    return result


def _rate(number: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return number / (time.perf_counter() - began)


def _statement(queues: WorkQueues) -> list[Any]:
    """Tasks of each queue, counted by one statement: the first queue whose criteria are met, in order."""
    cases = [
        When(to_q(parse(queue.criteria, queue.variables), FIELDS) or Q(pk__isnull=False), then=Value(queue.id))
        for queue in queues.in_order(VO, LABEL)
    ]
    found = Task.objects.annotate(queue=Case(*cases, default=None, output_field=IntegerField())).values("queue")
    return list(found.annotate(tasks=Count("id")).order_by("queue"))
