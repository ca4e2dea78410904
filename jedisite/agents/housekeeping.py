"""The installation's own agent: partitions are made ahead and old ones dropped."""

from __future__ import annotations

from django.db import connection
from django.utils import timezone

from jedisite.agents import passes
from jedisite.agents.passes import Pass
from jedisite.database import partitions
from jedisite.identity import throttle


def register() -> None:
    partitions.MONTHLY.append(partitions.Monthly("agent_passes", keep_months=3))
    passes.register("partitions", keep_partitions, period_s=3600, title="Makes partitions ahead, drops old ones")


def keep_partitions() -> Pass:
    """One pass over all partitioned tables."""
    today = timezone.now().date()
    changed: list[str] = []
    for monthly in partitions.MONTHLY:
        changed += partitions.ensure_months(monthly.table, today)
        if monthly.keep_months is not None:
            changed += partitions.drop_old_months(monthly.table, today, monthly.keep_months)
    for table in partitions.BY_TASK:
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM jedi_tasks_id_seq")
            highest = cursor.fetchone()[0]
        changed += partitions.ensure_task_ranges(table, highest)
    throttle.forget_old()
    return Pass(len(changed), ", ".join(changed))
