"""Moves of instances: an instance belongs to the caller who was the first to report for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from jedisite.database.sql import numbers, texts
from tasks_app.models import Harvester


class ForeignInstanceError(PermissionError):
    """The instance belongs to somebody else."""


_CHECK_IN = """
INSERT INTO harvester_instances AS h (harvester_id, owner, hostname, starttime, sw_version, commit_stamp, lastupdate)
VALUES (%(id)s, %(by)s, nullif(%(host)s, ''), %(started)s, nullif(%(version)s, ''), nullif(%(commit)s, ''), clock_timestamp())
    ON CONFLICT (harvester_id) DO UPDATE
   SET hostname = coalesce(excluded.hostname, h.hostname), starttime = coalesce(excluded.starttime, h.starttime),
       sw_version = coalesce(excluded.sw_version, h.sw_version), commit_stamp = coalesce(excluded.commit_stamp, h.commit_stamp),
       lastupdate = excluded.lastupdate
 WHERE h.owner = excluded.owner
"""


def check_in(
    harvester: str, *, by: str, host: str = "", started: datetime | None = None, version: str = "", commit: str = ""
) -> None:
    """Note that an instance is alive, and in a transaction lock it. The first caller becomes its owner.

    Raises ForeignInstanceError when it belongs to somebody else; then nothing has changed.
    """
    given = {"id": harvester, "by": by, "host": host, "started": started, "version": version, "commit": commit}
    with connection.cursor() as cursor:
        cursor.execute(_CHECK_IN, given)
        if cursor.rowcount == 0:
            raise ForeignInstanceError(f"the instance {harvester} belongs to somebody else")


def highest_worker(harvester: str, *, by: str) -> int:
    """The highest number that a worker of an instance ever had; 0 of an unknown one. Raises ForeignInstanceError."""
    found = Harvester.objects.filter(pk=harvester).values_list("owner", "highest_worker").first()
    if found is None:
        return 0
    if found[0] != by:
        raise ForeignInstanceError(f"the instance {harvester} belongs to somebody else")
    return int(found[1])


Counts = Mapping[tuple[str, str, str], int]
"""Numbers of workers by label of jobs, resource type and status."""

_GIVEN = """WITH given AS (
    SELECT * FROM unnest(%(labels)s::text[], %(types)s::text[], %(states)s::text[], %(counts)s::int[])
               g (label, type, status, n))"""
# ruff: noqa: S608 - every piece is a constant of this module
_FORGET = f"""{_GIVEN}
DELETE FROM harvester_worker_stats s WHERE harvester_id = %(id)s AND computingsite = %(queue)s
   AND NOT EXISTS (SELECT 1 FROM given WHERE (label, type, given.status) = (s.jobtype, s.resourcetype, s.status))
"""
_REPORT = f"""{_GIVEN}
INSERT INTO harvester_worker_stats (harvester_id, computingsite, jobtype, resourcetype, status, n_workers, lastupdate)
SELECT %(id)s, %(queue)s, label, type, status, n, clock_timestamp() FROM given
    ON CONFLICT (harvester_id, computingsite, resourcetype, jobtype, status) DO UPDATE
   SET n_workers = excluded.n_workers, lastupdate = excluded.lastupdate
"""


@transaction.atomic
def report_statistics(harvester: str, queue: str, counts: Counts, *, by: str) -> None:
    """Put these counts in the place of those that an instance gave for a queue before. Raises ForeignInstanceError."""
    check_in(harvester, by=by)
    given = {
        "id": harvester,
        "queue": queue,
        "labels": texts(label for label, _, _ in counts),
        "types": texts(kind for _, kind, _ in counts),
        "states": texts(status for _, _, status in counts),
        "counts": numbers(counts.values()),
    }
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, given)
        cursor.execute(_REPORT, given)


_STATISTICS = """
SELECT computingsite, harvester_id, jobtype, resourcetype, status, n_workers FROM harvester_worker_stats
 WHERE lastupdate > clock_timestamp() - interval '60 minutes' ORDER BY 1, 2, 3, 4, 5
"""


def statistics() -> dict[str, Any]:
    """Counts of the last hour: {queue: {instance: {label: {resource type: {status: n}}}}}."""
    found: dict[str, Any] = {}
    with connection.cursor() as cursor:
        cursor.execute(_STATISTICS)
        for queue, harvester, label, kind, status, workers in cursor.fetchall():
            by_label = found.setdefault(queue, {}).setdefault(harvester, {}).setdefault(label, {})
            by_label.setdefault(kind, {})[status] = workers
    return found


_DIALOGS = """
INSERT INTO harvester_dialogs (harvester_id, diagid, modulename, identifier, creationtime, messagelevel, diagmessage)
SELECT %(id)s, d.number, d.module, d.subject, coalesce(d.at, clock_timestamp()), d.level, d.message
  FROM jsonb_to_recordset(%(rows)s::jsonb) d (number bigint, module text, subject text, at timestamptz, level text, message text)
    ON CONFLICT DO NOTHING
"""
_METRICS = """
INSERT INTO harvester_metrics (harvester_id, harvester_host, creation_time, metrics)
SELECT %(id)s, m.host, m.at, m.metrics FROM jsonb_to_recordset(%(rows)s::jsonb) m (host text, at timestamptz, metrics jsonb)
    ON CONFLICT DO NOTHING
"""


@transaction.atomic
def add_dialogs(harvester: str, dialogs: list[dict[str, Any]], *, by: str) -> None:
    """Keep lines of an instance's log: {number, module, subject, at, level, message}. Raises ForeignInstanceError."""
    check_in(harvester, by=by)
    with connection.cursor() as cursor:
        cursor.execute(_DIALOGS, {"id": harvester, "rows": json.dumps(dialogs)})


@transaction.atomic
def add_metrics(harvester: str, metrics: list[dict[str, Any]], *, by: str) -> None:
    """Keep what an instance measures of its hosts: {host, at, metrics}. Raises ForeignInstanceError."""
    check_in(harvester, by=by)
    with connection.cursor() as cursor:
        cursor.execute(_METRICS, {"id": harvester, "rows": json.dumps(metrics)})
