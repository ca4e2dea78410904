"""Two agents. A pass of `probe` writes a row when it begins, works for a moment in the database, and closes its row.

`turns` takes registered tasks: those called `loops` and `hangs` never end, one in Python and one in C.
"""

from __future__ import annotations

import os
from datetime import timedelta

from django.apps import AppConfig

from jedisite.agents.registry import Pass

PERIOD_S = 0.3
LEASE_S = 2.0
WORK_S = 0.15
TABLE = """
CREATE TABLE probe_passes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, pid int NOT NULL,
                           began timestamptz NOT NULL DEFAULT clock_timestamp(), ended timestamptz)
"""


class ProbeConfig(AppConfig):
    name = "tests.jedisite.probe"
    label = "probe"

    def ready(self) -> None:
        from jedisite.agents import registry

        every = timedelta(seconds=PERIOD_S)
        registry.agent("probe", every=every, title="Writes down its passes", lease_s=LEASE_S)(run)
        registry.agent("turns", every=every, title="Works on tasks that never end")(take_turns)


def run() -> Pass:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO probe_passes (pid) VALUES (%s) RETURNING id", [os.getpid()])
        (number,) = cursor.fetchone()
        cursor.execute("SELECT pg_sleep(%s)", [WORK_S])
        cursor.execute("UPDATE probe_passes SET ended = clock_timestamp() WHERE id = %s", [number])
    return Pass(1)


def take_turns() -> Pass:
    from jedisite.agents.passes import owner
    from tasks_app.lifecycle import claims

    claimed = claims.claim_tasks(owner(), ["registered"], 10, agent="turns")
    return Pass(claims.for_each(claimed, _turn, by="turns"))


def _turn(task_id: int, fence: int) -> None:
    from tasks_app.lifecycle import claims
    from tasks_app.models import Task

    name = Task.objects.get(pk=task_id).name
    while name == "loops":
        pass
    if name == "hangs":
        sum(range(10**14))  # no signal is looked at before it ends
    claims.release_task(task_id, fence, wait=timedelta(hours=1), note="had its turn")
