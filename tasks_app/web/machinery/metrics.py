"""`/metrics`: the state of the grid and of this installation, for Prometheus.

Every number is read from the database when it is asked for: any process answers for all, and nothing is lost when one ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

import django
from django.db import connection
from django.db.models import Count, F, FloatField, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce, Greatest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from brokerage_app.grid import installed_policy
from brokerage_app.models import JobCount, Queue, Refreshed
from jedisite.agents.agent_state import AgentRow, rows
from jedisite.identity.callers import Right, needs
from jedisite.models import Agent
from tasks_app.counts.line_order import EXECUTING, QUEUED
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import AttentionItem, Task
from tasks_app.web.frame import keyset_pages
from tasks_app.web.machinery import backlogs

DEFAULT_CORE_POWER = 10.0
"""HS of a core of a queue that does not say."""
_OPEN_TASKS = """
SELECT status, count(*), count(*) FILTER (WHERE lockedby IS NULL AND next_check_at <= clock_timestamp())
  FROM jedi_tasks WHERE NOT status = ANY(%s) GROUP BY status
"""


@needs(Right.READ)
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """All measures in the text format that every Prometheus reads, whatever its Accept header asks for."""
    registry = CollectorRegistry()
    registry.register(Installation())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class Installation(Collector):
    """Measures of all that is in the database."""

    def describe(self) -> list[Metric]:
        """Nothing: otherwise the registry would collect once only to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("jedi_installation", "Software versions", value=_versions())
        yield from _tasks()
        yield from _jobs()
        yield from _shares()
        yield from _agents()
        yield _attention()
        yield from _machinery()


def _versions() -> dict[str, str]:
    try:
        own = metadata.version("jedisite")
    except metadata.PackageNotFoundError:  # run from a checkout whose dependencies were installed by other means
        own = "unknown"
    server = connection.pg_version // 10_000  # type: ignore[attr-defined]
    return {"version": own, "django": django.get_version(), "postgresql": str(server)}


def _gauge(name: str, help: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"jedi_{name}", help, labels=labels)


def _tasks() -> Iterator[Metric]:
    tasks = _gauge("tasks", "Tasks by status; final ones are counted to just above 10 000", "status")
    due = _gauge("tasks_due", "Open tasks that an agent may claim now", "status")
    final = sorted(TASK_FINAL)
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_TASKS, [final])
        found = {status: (number, now_due) for status, number, now_due in cursor.fetchall()}
    for status, number in keyset_pages.capped_counts(Task._meta.db_table, "status", final).items():
        tasks.add_metric([status], number)
    for status in (s.value for s in TaskStatus if s not in TASK_FINAL):
        number, now_due = found.get(status, (0, 0))
        tasks.add_metric([status], number)
        due.add_metric([status], now_due)
    return iter((tasks, due))


def _jobs() -> Iterator[Metric]:
    """Open jobs as the brokers counted them last; how old those counts are is a measure, too."""
    jobs = _gauge("jobs", "Open jobs by status", "status")
    cores = _gauge("job_cores", "Cores used or requested by open jobs", "status")
    for row in JobCount.objects.values("status").annotate(n=Sum("jobs"), c=Sum("cores")).order_by("status"):
        jobs.add_metric([row["status"]], row["n"])
        cores.add_metric([row["status"]], row["c"])
    age = _gauge("counted_seconds_ago", "Age of the counts that brokers read", "what")
    now = timezone.now()
    for name, at in Refreshed.objects.order_by("name").values_list("name", "at"):
        age.add_metric([name], max((now - at).total_seconds(), 0.0))
    return iter((jobs, cores, age))


def _shares() -> Iterator[Metric]:
    """Power in HS, from the counts of open jobs."""
    tree = installed_policy.share_tree()
    power = Subquery(Queue.objects.filter(name=OuterRef("site")).values("core_power")[:1])
    each = Greatest(F("cores"), F("jobs")) * Coalesce(power, DEFAULT_CORE_POWER)
    counted = (
        JobCount.objects.filter(status__in=[*EXECUTING, *QUEUED])
        .values("share", "status")
        .annotate(hs=Sum(each, output_field=FloatField()))
        .order_by("share", "status")
    )
    executing: dict[str, float] = {}
    queued: dict[str, float] = {}
    for row in counted:
        part = executing if row["status"] in EXECUTING else queued
        part[row["share"]] = part.get(row["share"], 0.0) + row["hs"]
    usage = tree.usage(executing, queued)
    actual = _gauge("share_executing_hs", "Power used by the executing jobs of a share", "share")
    waiting = _gauge("share_queued_hs", "Power requested by the queued jobs of a share", "share")
    target = _gauge("share_target_hs", "Target power of a share: its part of the power of all executing jobs", "share")
    for name in tree.shares:
        actual.add_metric([name], usage[name].executing)
        waiting.add_metric([name], usage[name].queued)
        target.add_metric([name], usage[name].target)
    return iter((actual, waiting, target))


def _agents() -> Iterator[Metric]:
    now = timezone.now()
    judged = rows(Agent.objects.all(), now)

    def ended_ago(row: AgentRow) -> float | None:
        return (now - row.agent.last_ended_at).total_seconds() if row.agent.last_ended_at else None

    measures = (
        ("agent_last_pass_seconds_ago", "Seconds since an agent's last pass ended", ended_ago),
        ("agent_last_pass_duration_seconds", "Duration of an agent's last pass", lambda row: row.agent.last_duration_s),
        ("agent_last_pass_items", "Items handled by an agent's last pass", lambda row: row.agent.last_items),
        ("agent_passes", "Passes made by an agent", lambda row: row.agent.passes),
        (
            "agent_errors_in_a_row",
            "Failed passes of an agent since its last success",
            lambda row: row.agent.errors_in_a_row,
        ),
        ("agent_period_seconds", "Period of an agent", lambda row: row.agent.period_s),
        ("agent_overdue_seconds", "Seconds by which an agent is overdue", lambda row: row.late_s),
        ("agent_late", "1 when an agent is overdue by more than three periods", lambda row: float(row.late)),
        ("agent_paused", "1 when an agent is paused", lambda row: float(row.agent.paused)),
    )
    for name, help, value_of in measures:
        family = _gauge(name, help, "agent")
        for row in judged:
            value = value_of(row)
            if value is not None:
                family.add_metric([row.agent.name], value)
        yield family
    family = _gauge("agent_backlog", "Items waiting for an agent, counted to just above 10 000", "agent", "things")
    for name, backlog in backlogs.backlogs().items():
        family.add_metric([name, backlog.things], backlog.number)
    yield family


def _attention() -> Metric:
    family = _gauge("attention_items", "Open attention items that are not snoozed", "kind", "tone")
    there = AttentionItem.objects.filter(gone_at=None).exclude(snoozed_until__gt=timezone.now())
    for kind, tone, number in there.order_by("kind", "tone").values_list("kind", "tone").annotate(n=Count("id")):
        family.add_metric([kind, tone], number)
    return family


def _machinery() -> Iterator[Metric]:
    found = backlogs.machinery()
    queue = _gauge("q2_queue", "Passes in the queue of django-q2", "state")
    queue.add_metric(["waiting"], found.queued)
    queue.add_metric(["taken"], found.in_work)
    yield queue
    for name, help, value in (
        ("q2_oldest_seconds", "Age of the oldest pass waiting in the queue of django-q2", found.oldest_queued_s),
        ("database_connections", "Connections to the database", found.connections),
        ("database_active_connections", "Connections executing a statement", found.active),
        ("database_max_connections", "Maximum number of connections", found.most_connections),
        ("database_waiting_locks", "Waits for locks", found.waiting_locks),
        ("database_oldest_transaction_seconds", "Age of the oldest transaction", found.oldest_transaction_s),
        ("database_bytes", "Size of the database", found.database_bytes),
    ):
        yield GaugeMetricFamily(f"jedi_{name}", help, value=value)
