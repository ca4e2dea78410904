"""Task commando: carries out the commands of users, in the order in which each task got them."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from tasks_app.commands.obeying import LIMIT, complete_commands, obey_again, obey_next
from tasks_app.domain.task_commands import TASK_DOING
from tasks_app.lifecycle import claims


@agent("commando", every="3s", title="Carries out users' commands on tasks")
def run(limit: int = LIMIT, now: datetime | None = None) -> Pass:
    """Carry out waiting commands, repeat those of stuck tasks, then complete commands whose last job has ended."""
    now = now or timezone.now()
    items = 0
    while items < limit and obey_next():
        items += 1
    if items or claims.states_in_use(TASK_DOING):
        obey_again(now)
        items += complete_commands()
    return Pass(items, more=items >= limit)
