"""How tasks take turns in the job generator, as the configuration of their work queue or share says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from brokerage_app.grid.configured import configuration
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.task_parameters import TURN_ATTRIBUTES
from jedisite.database.sql import numbers, texts
from tasks_app.generation.groups import Queues, key_of, name_of, unit_of
from tasks_app.lifecycle.turn_order import Turns
from tasks_app.models import Task

COLUMNS: Final = {name: f"t.{name.lower()}::text" for name in TURN_ATTRIBUTES}


def turns_of(queues: Queues, order: Sequence[int] = ()) -> Turns:
    """The turns of one pass. Where no row sets NTASKS or GROUPBYATTR, the statement is not longer for them.

    `order`: work queues, those first that are furthest below their shares; empty where these do not steer.
    """
    config, values = configuration(), queues.values
    who = _cases(config, "GROUPBYATTR", queues, values)
    most = _cases(config, "NTASKS", queues, values)
    return Turns(
        who=f"CASE {' '.join(f'WHEN {when} THEN {COLUMNS[name]}' for when, name in who)} ELSE t.username END"
        if who
        else "t.username",
        express_percent=config.get("dbproxy", "SUPER_HIGH_PRIO_TASK_RATIO"),
        limit=f"CASE {' '.join(f'WHEN {when} THEN {int(number)}' for when, number in most)} END" if most else "",
        limited=key_of("t"),
        unit=unit_of("t") if queues.partitions else "t.workqueue_id",
        order="array_position(%(order)s::int[], t.workqueue_id::int)" if order else "",
        own_values={
            **(values if who or most or queues.partitions else {}),
            **({"order": numbers(order)} if order else {}),
        },
    )


def most_files(task: Task, queues: Queues) -> int | None:
    """The input files of a task that one pass may read; None is any number."""
    found: int | None = configuration().get("jobgen", "NFILES", name_of(task, queues), vo=task.vo)
    return found


def _cases(config: Configuration, key: str, queues: Queues, values: dict[str, Any]) -> list[tuple[str, Any]]:
    """SQL on the row `t` of the tasks for which a row of the configuration counts, and its value: the row that counts first
    comes first. What the SQL needs is added to `values`."""
    rows = sorted(config.variants("jobgen", key), key=lambda row: (not row[0], not row[1]))
    return [
        (_concerns(f"{key}_{at}".lower(), name, vo, queues, values), config.get("jobgen", key, name, vo=vo))
        for at, (name, vo) in enumerate(rows)
    ]


def _concerns(place: str, name: str, vo: str, queues: Queues, values: dict[str, Any]) -> str:
    parts = []
    if name:
        values[f"{place}_of"] = texts(key for key, of in queues.all_names.items() if of == name)
        parts.append(f"{key_of('t')} = ANY(%({place}_of)s::text[])")
    if vo:
        values[f"{place}_vo"] = vo
        parts.append(f"t.vo = %({place}_vo)s")
    return " AND ".join(parts) or "TRUE"
