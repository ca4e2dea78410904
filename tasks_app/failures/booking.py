"""Books the ends of jobs for those who look for errors: rows of failed jobs, fingerprints, and counts by the hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.domain.fingerprints import Fingerprint, fingerprint_of, node_of, version_of
from tasks_app.domain.job_errors import ALL_FIELDS
from tasks_app.models import Job

# ruff: noqa: S608 - names of our own columns
_COLUMN_OF = {field.name: field.column for field in Job._meta.concrete_fields}
_ERROR_COLUMNS = ", ".join(str(_COLUMN_OF[name]) for name in ALL_FIELDS)
_LONGEST_WALLTIME_S = 10 * 366 * 86400


class End(NamedTuple):
    """A job that has finished or failed, as it is counted."""

    job_id: int
    failed: bool
    ended: datetime
    walltime_s: int
    cores: int
    task_id: int | None
    attempt: int
    site: str
    node: str
    user: str
    activity: str
    version: str

    def counted(self) -> tuple[tuple[str, str], ...]:
        """(dimension, key) of all counts that it belongs to."""
        return (
            ("all", ""),
            ("site", self.site),
            ("node", self.node),
            ("task", "" if self.task_id is None else str(self.task_id)),
            ("user", self.user),
            ("activity", self.activity),
            ("version", self.version),
        )


ME = "failures"
_DUE = f"""SELECT pandaid FROM job_ends_due WHERE NOT {troubles.left_aside("job", "pandaid")}
            ORDER BY pandaid LIMIT %(limit)s"""


def book_ends(limit: int) -> int:
    """Book up to `limit` jobs whose end is noted in `job_ends_due`, each once. Returns how many were noted.

    The notes go in the transaction that books: one that is broken off leaves them for the next. A job that cannot be
    booked is left aside, longer each time, and does not hold up the others.
    """
    with hot_cursor() as cursor:
        cursor.execute(_DUE, {"limit": limit, "agent": ME})
        return troubles.salvage(ME, [job for (job,) in cursor.fetchall()], _book)


def _book(jobs: list[int]) -> int:
    """In a transaction: book the ends of those of the jobs that nobody else books."""
    with hot_cursor() as cursor:
        cursor.execute(
            """DELETE FROM job_ends_due WHERE pandaid IN (
                   SELECT pandaid FROM job_ends_due WHERE pandaid = ANY(%s::bigint[]) ORDER BY pandaid
                      FOR UPDATE SKIP LOCKED) RETURNING pandaid""",
            [numbers(jobs)],
        )
        due = sorted(job for (job,) in cursor.fetchall())
        if not due:
            return 0
        ends = _ends(cursor, due, "jobs")
        gone = set(due) - {end.job_id for end in ends}
        if gone:
            # The agent did not run for so long that they have been archived.
            ends += _ends(cursor, sorted(gone), "jobs_archive")
        _count(cursor, ends)
        _note_nodes(cursor, ends)
        failed = [end for end in ends if end.failed]
        if failed:
            _book_failed(cursor, failed, "jobs")
            if gone:
                _book_failed(cursor, [end for end in failed if end.job_id in gone], "jobs_archive")
    return len(due)


def _ends(cursor: psycopg.Cursor[Any], ids: Sequence[int], table: str) -> list[End]:
    cursor.execute(
        f"""SELECT pandaid, jobstatus = 'failed', coalesce(statechangetime, modificationtime),
                   least(greatest(extract(epoch FROM coalesce(endtime, statechangetime, modificationtime) - starttime), 0),
                         {_LONGEST_WALLTIME_S})::int,
                   coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1), jeditaskid, coalesce(attemptnr, 0),
                   coalesce(computingsite, ''), coalesce(modificationhost, ''), coalesce(produsername, ''),
                   coalesce(gshare, ''), coalesce(pilotid, '')
              FROM {table} WHERE pandaid = ANY(%s::bigint[]) AND jobstatus IN ('finished', 'failed')""",
        [numbers(ids)],
    )
    return [
        End(
            job,
            failed,
            ended,
            walltime or 0,
            cores,
            task,
            attempt,
            site,
            node_of(node),
            user,
            activity,
            version_of(pilot),
        )
        for job, failed, ended, walltime, cores, task, attempt, site, node, user, activity, pilot in cursor.fetchall()
    ]


def _count(cursor: psycopg.Cursor[Any], ends: Iterable[End]) -> None:
    """Add to the counts of the hours. Rows are locked in the order of their keys, as by everybody who counts."""
    counts: dict[tuple[str, datetime, str], list[int]] = defaultdict(lambda: [0, 0])
    for end in ends:
        hour = end.ended.replace(minute=0, second=0, microsecond=0)
        for dimension, key in end.counted():
            if key or dimension == "all":
                counts[dimension, hour, key][end.failed] += 1
    rows = sorted(counts)
    cursor.execute(
        """INSERT INTO job_ends (dimension, hour, key, finished, failed)
           SELECT * FROM unnest(%s::text[], %s::timestamptz[], %s::text[], %s::int[], %s::int[])
           ON CONFLICT (dimension, hour, key) DO UPDATE
              SET finished = job_ends.finished + excluded.finished, failed = job_ends.failed + excluded.failed""",
        [
            texts(dimension for dimension, _, _ in rows),
            [hour for _, hour, _ in rows],
            texts(key for _, _, key in rows),
            numbers(counts[row][0] for row in rows),
            numbers(counts[row][1] for row in rows),
        ],
    )


def _note_nodes(cursor: psycopg.Cursor[Any], ends: Iterable[End]) -> None:
    """Note on which nodes jobs ended. A node that has its hour already is not written again."""
    hours: dict[tuple[str, str], datetime] = {}
    for end in ends:
        if end.node:
            hour = end.ended.replace(minute=0, second=0, microsecond=0)
            hours[end.node, end.site] = max(hour, hours.get((end.node, end.site), hour))
    nodes = sorted(hours)
    cursor.execute(
        """INSERT INTO job_nodes (node, computingsite, last_seen)
           SELECT g.* FROM unnest(%s::text[], %s::text[], %s::timestamptz[]) g (node, computingsite, last_seen)
             LEFT JOIN job_nodes j USING (node, computingsite)
            WHERE j.id IS NULL OR j.last_seen < g.last_seen ORDER BY node, computingsite
           ON CONFLICT (node, computingsite) DO UPDATE SET last_seen = greatest(job_nodes.last_seen, excluded.last_seen)""",
        [texts(node for node, _ in nodes), texts(site for _, site in nodes), [hours[key] for key in nodes]],
    )


def _book_failed(cursor: psycopg.Cursor[Any], ends: Sequence[End], table: str) -> None:
    by_id = {end.job_id: end for end in ends}
    cursor.execute(
        f"SELECT pandaid, {_ERROR_COLUMNS} FROM {table} WHERE pandaid = ANY(%s::bigint[]) ORDER BY pandaid",
        [numbers(by_id)],
    )
    found = {
        job: fingerprint_of(dict(zip(ALL_FIELDS, values, strict=True)))
        for job, *values in cursor.fetchall()
        if job in by_id
    }
    seen: dict[Fingerprint, tuple[str, datetime, datetime]] = {}
    for job, (print_, example) in found.items():
        at = by_id[job].ended
        said, first, last = seen.get(print_, (example, at, at))
        seen[print_] = (said, min(first, at), max(last, at))
    ids = _fingerprints(cursor, seen)
    rows = [(by_id[job], ids[print_.component, print_.code, print_.text]) for job, (print_, _) in found.items()]
    cursor.execute(
        """INSERT INTO job_failures (pandaid, ended, fingerprint_id, jeditaskid, attemptnr, computingsite, node, produsername,
                  gshare, pilot_version, walltime_s, wasted_core_s)
           SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::int[], %s::bigint[], %s::int[], %s::text[], %s::text[],
                                %s::text[], %s::text[], %s::text[], %s::int[], %s::bigint[])
           ON CONFLICT (pandaid) DO NOTHING""",
        [
            numbers(end.job_id for end, _ in rows),
            [end.ended for end, _ in rows],
            numbers(number for _, number in rows),
            numbers(end.task_id for end, _ in rows),
            numbers(end.attempt for end, _ in rows),
            *(texts(getattr(end, name) for end, _ in rows) for name in ("site", "node", "user", "activity", "version")),
            numbers(end.walltime_s for end, _ in rows),
            numbers(end.walltime_s * end.cores for end, _ in rows),
        ],
    )


def _fingerprints(
    cursor: psycopg.Cursor[Any], seen: dict[Fingerprint, tuple[str, datetime, datetime]]
) -> dict[tuple[str, str, str], int]:
    """Ids of fingerprints by component, code and text, which are made or seen again. Locked in the order of their names."""
    order = sorted(seen, key=lambda p: (p.component, p.code, p.text))
    given = [
        texts(p.component for p in order),
        texts(p.code for p in order),
        texts(p.text for p in order),
        texts(p.category for p in order),
        texts(seen[p][0] for p in order),
        [seen[p][1] for p in order],
        [seen[p][2] for p in order],
    ]
    # Those that are known are not inserted in vain: that would use up numbers.
    cursor.execute(
        """WITH given AS MATERIALIZED (
               SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[],
                                    %s::timestamptz[]) g (component, code, text, category, example, first_seen, last_seen)),
           known AS MATERIALIZED (
               SELECT p.id, g.* FROM given g JOIN error_fingerprints p USING (component, code, text)
                ORDER BY component, code, text FOR UPDATE OF p),
           again AS (
               UPDATE error_fingerprints p SET first_seen = least(p.first_seen, k.first_seen),
                      last_seen = greatest(p.last_seen, k.last_seen) FROM known k WHERE k.id = p.id),
           made AS (
               INSERT INTO error_fingerprints (component, code, text, category, example, first_seen, last_seen,
                                               ticket, advice, classified_by)
               SELECT component, code, text, category, example, first_seen, last_seen, '', '', '' FROM given
                WHERE (component, code, text) NOT IN (SELECT component, code, text FROM known)
                ORDER BY component, code, text
               ON CONFLICT (component, code, text) DO UPDATE
                  SET last_seen = greatest(error_fingerprints.last_seen, excluded.last_seen)
               RETURNING id, component, code, text)
           SELECT id, component, code, text FROM known UNION ALL SELECT * FROM made""",
        given,
    )
    return {(component, code, text): number for number, component, code, text in cursor.fetchall()}
