"""Hot path: final reports of pilots, judged and booked. A finished job must have reported each of its outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

import psycopg
import structlog
from django.db import transaction

from jedisite.agents import troubles
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import Roots, is_its_place
from tasks_app.ddm.base import Content, Named
from tasks_app.domain.killcodes import KillCode
from tasks_app.domain.states import JobStatus
from tasks_app.models.dataset import LOG_TYPES, UNMERGED_TYPES
from tasks_app.outcomes import bad_inputs, end_hooks, gathering, optional_outputs, unmerged
from tasks_app.outcomes.job_kills import kill_codes
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.job_outputs import Output, outputs_of
from tasks_app.outcomes.outcomes import book

MISSING_OUTPUT = 201
"""ddm error: a job that reported success did not report all of its outputs."""
NAMED = 5
"""Missing outputs that a sentence names."""
MOST_BYTES = 2**48
"""No single file has more; so sums of many reports stay within the columns, and no pilot can stop the adder."""
_ADLER32 = re.compile(r"[0-9a-fA-F]{1,8}")
log = structlog.get_logger(__name__)


def judge(
    job_id: int,
    task_id: int | None,
    status: str,
    reported: Mapping[str, Any],
    expected: Sequence[Output],
    killed: KillCode | None,
    roots: Roots,
    taken: Mapping[tuple[str, str], Content] = MappingProxyType({}),
    optional: Collection[int] = frozenset(),
) -> Outcome:
    """What a final report amounts to. A finished job must have reported every output; one that was told to stop, and
    did, ends as its kill code says. A job whose output is to be merged has not ended: it waits for that.

    `taken`: scopes and names of outputs that stand for another content already. `optional`: files that it need not have made.
    """
    said = tuple((o, reported[o.lfn]) for o in expected if _usable(reported.get(o.lfn)))
    placed = tuple((o, r) for o, r in said if is_its_place(r["surl"], o.scope, o.lfn, roots))
    stored = tuple((o, r) for o, r in placed if (o.scope, o.lfn) not in taken)
    if status != JobStatus.FINISHED:
        logs = tuple((o, r) for o, r in stored if o.type in LOG_TYPES)
        if killed:
            return Outcome(job_id, task_id, killed.status, stored=logs, sub_status=killed.sub_status)
        return Outcome(job_id, task_id, JobStatus.FAILED, stored=logs)
    here = {o.lfn for o, _ in stored}
    missing = [o.lfn for o in expected if o.lfn not in here and (o.lfn in reported or o.file_id not in optional)]
    if missing:
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        diag = (
            f"the job ended successfully but did not report {len(missing)} of {plural(len(expected), 'output')}: "
            f"{', '.join(missing[:NAMED])}{more}"
        )
        if others := [(o, taken[o.scope, o.lfn]) for o, _ in placed if o.lfn not in here]:
            o, other = others[0]
            diag = (
                f"the output {o.lfn} could not be stored: the scope {o.scope} has another file of that name, in the dataset "
                f"{other.dataset} ({plural(other.size, 'byte')}), and a scope and a name are one file"
            )
        elif astray := [r["surl"] for o, r in said if o.lfn not in here]:
            diag += f"; at {astray[0][:200]} is not the place of a file of that scope and name"
        logs = tuple((o, r) for o, r in stored if o.type in LOG_TYPES)
        return Outcome(job_id, task_id, JobStatus.FAILED, "ddm", MISSING_OUTPUT, diag[:500], logs)
    waits = any(o.type in UNMERGED_TYPES for o in expected)
    return Outcome(job_id, task_id, JobStatus.MERGING if waits else JobStatus.FINISHED, stored=stored)


def _usable(report: Any) -> bool:
    """Whether a file's report has what the books need: size, checksum and place."""
    if not isinstance(report, Mapping):
        return False
    size, checksum, surl = report.get("fsize"), report.get("adler32"), report.get("surl")
    return (
        isinstance(size, int)
        and not isinstance(size, bool)
        and 0 <= size <= MOST_BYTES
        and isinstance(checksum, str)
        and _ADLER32.fullmatch(checksum) is not None
        and isinstance(surl, str)
        and len(surl) <= 4000
    )


def book_reports(limit: int = 1000, now: datetime | None = None) -> int:
    """Book up to `limit` final reports of pilots. Returns how many; reports that another process books are skipped.

    A report that cannot be booked is left aside, longer each time, and does not hold up the others.
    """
    with hot_cursor() as cursor:
        try:
            with transaction.atomic():
                return _book_some(cursor, _DUE, {"limit": limit, "agent": ME}, now)
        except troubles.CIRCUMSTANCES:
            raise
        except Exception:
            log.exception("adder.batch_failed")
            cursor.execute(_DUE, {"limit": limit, "agent": ME})
            ids = [job_id for (job_id,) in cursor.fetchall()]
            return troubles.salvage(ME, ids, partial(_book_these, cursor, now=now))


ME = "adder"
_DUE = f"""SELECT pandaid FROM job_output_report WHERE NOT {troubles.left_aside("job", "pandaid")}
            ORDER BY pandaid LIMIT %(limit)s"""  # noqa: S608 - constants


def _book_these(cursor: psycopg.Cursor[Any], ids: list[int], *, now: datetime | None) -> int:
    which = "SELECT pandaid FROM job_output_report WHERE pandaid = ANY(%(ids)s) ORDER BY pandaid"
    return _book_some(cursor, which, {"ids": ids}, now)


def _book_some(cursor: psycopg.Cursor[Any], which: str, values: Mapping[str, Any], now: datetime | None) -> int:
    """In a transaction: book the reports that a query of ours names, but for those that another process books."""
    cursor.execute(
        f"""DELETE FROM job_output_report WHERE pandaid IN ({which} FOR UPDATE SKIP LOCKED)
            RETURNING pandaid, jeditaskid, jobstatus, data::text""",  # noqa: S608 - queries of ours
        values,
    )
    reports = sorted(cursor.fetchall())
    if not reports:
        return 0
    ids = [r[0] for r in reports]
    expected = outputs_of(cursor, ids)
    killed = kill_codes(cursor, ids)
    said = {job_id: json.loads(data) for job_id, _, _, data in reports}
    taken = data_management().others_of_these_names(
        Named(o.dataset, o.scope, o.lfn, r["fsize"], r["adler32"])
        for job_id in ids
        for o in expected.get(job_id, ())
        if _usable(r := said[job_id].get(o.lfn))
    )
    roots = Roots()
    silent = _silent(reports, expected, said)
    optional = frozenset(one.file_id for one in optional_outputs.of_jobs(cursor, silent)) if silent else frozenset()
    for job_id in end_hooks.consumers_among(cursor, silent):
        # What they make of ranges is merged by another job; a log is all that they may report.
        expected[job_id] = [o for o in expected[job_id] if o.type in LOG_TYPES]
        optional |= {o.file_id for o in expected[job_id]}
    outcomes = [
        _outcome(row, said[row[0]], expected.get(row[0], ()), killed.get(row[0]), roots, taken, optional)
        for row in reports
    ]
    outcomes = list(gathering.with_places(outcomes))
    gathered = gathering.begin(cursor, outcomes, said)
    book(cursor, [o for o in outcomes if o.job_id not in gathered] if gathered else outcomes, now)
    failed = [o.job_id for o in outcomes if o.status == JobStatus.FAILED]
    if failed:
        transaction.on_commit(lambda: bad_inputs.check(failed), robust=True)
    _forgive(cursor, list(killed))
    return len(reports)


def forget_troubles() -> None:
    """Reports that have been booked since are in no trouble any more."""
    with hot_cursor() as cursor:
        cursor.execute(
            """DELETE FROM agent_troubles x WHERE x.agent = %s AND x.kind = 'job'
                  AND NOT EXISTS (SELECT 1 FROM job_output_report r WHERE r.pandaid = x.subject)""",
            [ME],
        )


def _outcome(
    row: tuple[int, int | None, str, str],
    said: Mapping[str, Any],
    expected: Sequence[Output],
    killed: KillCode | None,
    roots: Roots,
    taken: Mapping[tuple[str, str], Content],
    optional: Collection[int],
) -> Outcome:
    job_id, task_id, status, _ = row
    if (of_line := end_hooks.of_line(job_id, task_id, status, said)) is not None:
        return of_line
    if status == unmerged.MERGED:
        return Outcome(job_id, task_id, JobStatus.FINISHED, merge_is_over=True)
    if status == unmerged.NOT_MERGED:
        # Cancelled and not failed, as JEDI's document has it: its inputs are tried again, and the job did no wrong.
        diag = f"its output was not merged: no attempt is left after job {said.get('merge_job')}"
        code = unmerged.NOT_MERGED_ERROR
        return Outcome(job_id, task_id, JobStatus.CANCELLED, "taskbuffer", code, diag, merge_is_over=True)
    return judge(job_id, task_id, status, said, expected, killed, roots, taken, optional)


def _silent(
    reports: Sequence[tuple[int, int | None, str, str]],
    expected: Mapping[int, Sequence[Output]],
    said: Mapping[int, Mapping[str, Any]],
) -> list[int]:
    """Jobs that ended well without reporting all outputs: nothing is asked of the others."""
    return [
        job_id
        for job_id, _, status, _ in reports
        if status == JobStatus.FINISHED and any(o.lfn not in said[job_id] for o in expected.get(job_id, ()))
    ]


def _forgive(cursor: psycopg.Cursor[Any], told: list[int]) -> None:
    """Jobs that were told to stop and ended well all the same have no error."""
    if told:
        cursor.execute(
            """UPDATE jobs SET taskbuffererrorcode = NULL, taskbuffererrordiag = NULL
                WHERE pandaid = ANY(%s) AND jobstatus IN ('finished', 'merging')""",
            [told],
        )
