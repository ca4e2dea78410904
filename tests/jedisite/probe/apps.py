"""The agent `probe`. A pass writes a row when it begins, works for a moment in the database, and closes its row."""

from __future__ import annotations

import os

from django.apps import AppConfig

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
        from jedisite import agents

        agents.register("probe", run, period_s=PERIOD_S, title="Writes down its passes", lease_s=LEASE_S)


def run() -> object:
    from django.db import connection

    from jedisite.agents import Pass

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO probe_passes (pid) VALUES (%s) RETURNING id", [os.getpid()])
        (number,) = cursor.fetchone()
        cursor.execute("SELECT pg_sleep(%s)", [WORK_S])
        cursor.execute("UPDATE probe_passes SET ended = clock_timestamp() WHERE id = %s", [number])
    return Pass(1)
