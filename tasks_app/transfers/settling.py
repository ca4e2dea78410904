"""Rules that have ended, for whoever waits for them: acted upon once, in the transaction that notes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import psycopg

from jedisite.database.sql import numbers
from tasks_app.domain.transfer_states import TransferKind, TransferStatus


class EndedRule(NamedTuple):
    """A rule that has ended. `error` is the cause when it did not go well."""

    id: int
    kind: TransferKind
    status: TransferStatus
    destination: str
    dataset: str
    task_id: int | None
    job_id: int | None
    files: int
    files_failed: int
    error: str
    report: Any


def ended(cursor: psycopg.Cursor[Any], kind: TransferKind, limit: int) -> list[EndedRule]:
    """Rules of a kind that have ended, and that nobody has acted upon; locked until the transaction ends, oldest first."""
    cursor.execute(
        """SELECT id, kind, status, destination, dataset, jeditaskid, pandaid, files, files_failed, error, report::text
             FROM transfer_rules WHERE kind = %s AND NOT is_settled AND status NOT IN ('queued', 'active')
            ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED""",
        [kind, limit],
    )
    return [
        EndedRule._make(
            (rule, TransferKind(kind), TransferStatus(status), *more, json.loads(report) if report else None)
        )
        for rule, kind, status, *more, report in cursor.fetchall()
    ]


def settled(cursor: psycopg.Cursor[Any], rules: Iterable[int]) -> None:
    """These have been acted upon."""
    cursor.execute(
        "UPDATE transfer_rules SET is_settled = true, report = NULL WHERE id = ANY(%s::bigint[])", [numbers(rules)]
    )


class ArrivedFile(NamedTuple):
    """A file that a rule has brought: `url` is where it lies now."""

    rule_id: int
    file_id: int | None
    scope: str
    lfn: str
    url: str


def arrived(cursor: psycopg.Cursor[Any], rules: Iterable[int]) -> list[ArrivedFile]:
    """Files of these rules that are at the destination, also of rules that go on."""
    cursor.execute(
        """SELECT rule_id, fileid, scope, lfn, url FROM transfer_requests
            WHERE rule_id = ANY(%s::bigint[]) AND status = 'done' ORDER BY rule_id, id""",
        [numbers(rules)],
    )
    return [ArrivedFile(*row) for row in cursor.fetchall()]


def waiting_jobs(cursor: psycopg.Cursor[Any], jobs: Iterable[int]) -> set[int]:
    """Those of these jobs whose inputs are still being copied."""
    cursor.execute(
        "SELECT pandaid FROM transfer_rules WHERE pandaid = ANY(%s::bigint[]) AND kind = 'copy' AND NOT is_settled",
        [numbers(jobs)],
    )
    return {job for (job,) in cursor.fetchall()}
