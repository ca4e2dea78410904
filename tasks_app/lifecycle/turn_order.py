"""The order in which tasks get turns: work queues take turns, in each of them users, and urgent tasks come in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tasks_app.domain.source_labels import LABELS_FOR_ALL

EXPRESS: Final = 1500
"""Tasks of this priority or more are urgent: of a work queue they have turns of their own, whoever their users are."""

_OF_USERS = ", ".join(f"'{label}'" for label in LABELS_FOR_ALL)
_ORDER = "begun, CASE WHEN begun THEN next_check_at END, currentpriority DESC NULLS LAST, jeditaskid"
# An urgent task gets the place of the other tasks before which it comes, and of each queue one such task is the first.
_ROUND = "CASE WHEN express THEN 0.5 + (line - 1) * 100.0 / %(express_percent)s ELSE line END"


@dataclass(frozen=True, slots=True)
class Turns:
    """How tasks that wait take turns: SQL on the row `t`, and its values.

    Work queues take turns (production and analysis where there are none), and in each of them users: the first task of
    each, then the second of each, and so on. So the tasks of one production account need not wait for each of a hundred
    users. All labels that users may choose are analysis: who uses two of them gets no further turns. Of tasks in the same
    place those that have had no turn come first, and of the others the one whose last turn is longest ago.

    begun            whether a task has had a turn and needs more of them
    who              what takes turns in a work queue: users, or the values of another attribute
    express_percent  for each hundred other tasks of a work queue, so many urgent ones get a turn before them; 0: they are
                     as others
    limit            the most tasks of the task's work queue that may be taken, null for any number; "" where none has a limit
    limited          what has the limit
    unit             what takes turns before users do: work queues, a partition as one
    order            the place of a work queue among those whose turn is the same, the queues of a unit next to each other, and
                     in the unit before users; "" where none has one
    """

    begun: str = "FALSE"
    who: str = "t.username"
    express_percent: float = 0.0
    limit: str = ""
    limited: str = ""
    unit: str = "t.workqueue_id"
    order: str = ""
    own_values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        return {**self.own_values, "express_percent": self.express_percent}

    def waiting(self, free: str) -> str:
        """The tasks of which `free` holds, each with its place."""
        if self.express_percent > 0:
            express, round = f"coalesce(t.currentpriority, 0) >= {EXPRESS}", _ROUND
        else:
            express, round = "FALSE", "line"
        of_queue = f", {self.order} AS served" if self.order else ""
        order, per_queue = ("served NULLS LAST, ", ", served") if self.order else ("", "")
        limit = f", {self.limit} AS most, {self.limited} AS queue" if self.limit else ""
        places = f"""
    SELECT {"jeditaskid, most, queue" if limit else "jeditaskid"}, row_number() OVER (ORDER BY {round}, {order}{_ORDER}) AS place
      FROM (SELECT *, row_number() OVER (PARTITION BY unit, kind, express ORDER BY turn, {order}{_ORDER}) AS line
              FROM (SELECT *, row_number() OVER (PARTITION BY unit, kind, express{per_queue}, CASE WHEN NOT express THEN who END
                                                 ORDER BY {_ORDER}) AS turn
                      FROM (SELECT t.jeditaskid, {self.unit} AS unit, {self.who} AS who, t.currentpriority, t.next_check_at,
                                   CASE WHEN t.prodsourcelabel IN ({_OF_USERS}) THEN '' ELSE t.prodsourcelabel END AS kind,
                                   {express} AS express, {self.begun} AS begun{of_queue}{limit}
                              FROM jedi_tasks t WHERE {free}) tasks) turns) rounds"""  # noqa: S608 - constants of ours
        if limit:
            places = f"""
    SELECT jeditaskid, place
      FROM (SELECT *, row_number() OVER (PARTITION BY queue ORDER BY place) AS number FROM ({places}) placed) numbered
     WHERE most IS NULL OR number <= most"""  # noqa: S608 - constants of ours
        return f"waiting AS MATERIALIZED ({places}),\n"
