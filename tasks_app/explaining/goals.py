"""How far a task is from its goal, from the counts of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from django.db.models import Subquery

from jedisite.models import Agent
from tasks_app.domain.final import Books, completeness
from tasks_app.domain.states import DatasetStatus
from tasks_app.explaining.rules.goal_words import goal_line
from tasks_app.inputs.missing_files import Missing, total
from tasks_app.models import Dataset, Task

GOALS: Final = "goals"
"""The agent that looks at goals."""


def next_look() -> Subquery:
    """When goals are looked at next, as a column of a query."""
    return Subquery(Agent.objects.filter(name=GOALS).values("due_at")[:1])


def goal_of(task: Task, masters: Iterable[Dataset], missing: Mapping[int, Missing], due: datetime | None) -> str:
    """How far a task is from its goal, and when that is looked at next; "" without one.

    `masters`: all of its master inputs; `missing`: what is missing of them.
    """
    if task.goal is None:
        return ""
    counted = [one for one in masters if one.status != DatasetStatus.REMOVED]
    gone = total([missing[one.id] for one in counted if one.id in missing])
    books = Books(
        files=sum(one.files for one in counted) + gone.files,
        finished=sum(one.files_finished for one in counted),
        events=sum(one.events or 0 for one in counted) + gone.events,
        events_used=sum(one.events_used or 0 for one in counted),
    )
    return goal_line(task.goal, completeness(books), task.status, due)
