"""The installation's own agent: partitions are made ahead and old ones dropped."""

from __future__ import annotations

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.database import partitions
from jedisite.identity import throttle


@agent("partitions", every="1h", title="Creates partitions ahead of time and drops old ones")
def keep_partitions() -> Pass:
    """One pass over all partitioned tables."""
    today = timezone.now().date()
    changed: list[str] = []
    for monthly in partitions.MONTHLY:
        changed += partitions.ensure_months(monthly.table, today)
        if monthly.keep_months is not None:
            changed += partitions.drop_old_months(monthly.table, today, monthly.keep_months)
    for numbered in partitions.NUMBERED:
        changed += partitions.ensure_numbers(numbered.table, partitions.highest_of(numbered.sequence))
    throttle.forget_old()
    return Pass(len(changed), ", ".join(changed))
