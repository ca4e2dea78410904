"""Hot path: many reports at once, as harvester sends them. A few statements book them all, and each is judged alone.

The rules are those of `report.py`, with the columns of a list in the place of the parameters of one report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor, numbers, texts
from tasks_app.dispatch.report_masking import masked_reports
from tasks_app.dispatch.reports import (
    ALIVE_REPORTS,
    AT_OTHER_ATTEMPT,
    ERRORS,
    FINAL_REPORTS,
    MEASURES,
    MINE,
    NO_COMMAND,
    NotYoursError,
    OtherAttemptError,
    Report,
    UnknownJobError,
    measured,
    note_corrupted,
    unmoved,
    values_of,
)
from tasks_app.lifecycle.job_reports import ADVANCES, BEGIN, FINALS, OF_THEM

Answer = str | NotYoursError | UnknownJobError
"""The command for the pilot, or why its report was not taken."""

_TEXTS = frozenset(
    {
        "status",
        "site",
        "worker",
        "by",
        "outputs",
        "metadata",
        "node",
        "pilot_id",
        "batch_id",
        "job_metrics",
        "pilot_timing",
        "sub_status",
        "pilot_error_diag",
        "exe_error_diag",
        "trans_exit_code",
    }
)
_OTHERS = {"digest": "bytea", "start": "timestamptz", "end": "timestamptz"}
"""Types of what a report says, by its names in `values_of`; all else is a number."""

_PROOFS = tuple(dict.fromkeys(re.findall(r"%\((\w+)\)s", MINE)))
_PARAMETER = re.compile(r"%\((\w+)\)s(::\w+)?")
_MINE, _AT_OTHER_ATTEMPT = (_PARAMETER.sub(r"said_\1", condition) for condition in (MINE, AT_OTHER_ATTEMPT))

# ruff: noqa: S608 - every piece is a constant of ours
_HEARTBEATS = f"""{BEGIN}
UPDATE jobs SET heartbeat_at = clock_timestamp(), starttime = coalesce(starttime, said_start){{measures}}
  {OF_THEM} AND jobstatus = said_status
RETURNING said_n, commandtopilot
"""
_WHY = f"""
WITH given AS MATERIALIZED (SELECT * FROM unnest({{arrays}}) said ({{names}}))
SELECT said_n, jobstatus, commandtopilot, {_MINE}, {_AT_OTHER_ATTEMPT} FROM given JOIN jobs ON pandaid = said_job
"""


def update_jobs(reports: Sequence[Report]) -> list[Answer]:
    """Book reports, in the order given where several are of one job. Returns the answer to each, in their order.

    What `update_job` raises of a report is here its answer; the other reports are booked all the same.
    """
    answers: dict[int, Answer] = {}
    masked = masked_reports({n: one for n, one in enumerate(reports) if one.status in FINAL_REPORTS})
    reports = [masked.get(n, one) for n, one in enumerate(reports)]
    for one in reports:
        note_corrupted(one)
    for round_ in _rounds(reports):
        rows = {n: _row(n, reports[n]) for n in round_}
        alive = [rows[n] for n in round_ if reports[n].status in ALIVE_REPORTS]
        final = [rows[n] for n in round_ if reports[n].status in FINAL_REPORTS]
        moved = dict(_run(_HEARTBEATS, alive))
        moved |= dict(_run(ADVANCES, [row for row in alive if row["n"] not in moved]))
        ended = dict(_run(FINALS, final))
        answers |= {n: command or NO_COMMAND for n, command in (moved | ended).items()}
        answers |= _explained([row for n, row in rows.items() if n not in answers])
        if ended:
            kick("adder", at_most_every_s=0.3)
    return [answers[n] for n in range(len(reports))]


def _rounds(reports: Sequence[Report]) -> list[list[int]]:
    """Places of reports, so that no round has two of the same job; in each by the number of the job."""
    rounds: list[list[int]] = []
    seen: dict[int, Any] = {}
    for n in sorted(range(len(reports)), key=lambda n: reports[n].job_id):
        number = next(seen.setdefault(reports[n].job_id, count()))
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(n)
    return rounds


def _row(n: int, report: Report) -> dict[str, Any]:
    row = values_of(report)
    row |= {"n": n, "digest": f"\\x{row['digest'].hex()}"}
    if report.status in FINAL_REPORTS:
        row["outputs"] = json.dumps(dict(report.outputs))
        row["metadata"] = None if report.metadata is None else json.dumps(report.metadata)
    return row


def _run(statement: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    if not rows:
        return []
    columns = ("n", "start", "by", *_PROOFS) + (() if "status" in _PROOFS else ("status",))
    if statement is FINALS:
        columns += ("end", "outputs", "metadata", *ERRORS)
    measures = tuple([key for key in MEASURES if any(key in row for row in rows)])
    columns += measures
    with hot_cursor() as cursor:
        cursor.execute(_with(statement, columns, measures), {column: _array(column, rows) for column in columns})
        return cursor.fetchall()


@lru_cache(maxsize=256)
def _with(statement: str, columns: tuple[str, ...], measures: tuple[str, ...]) -> str:
    """The statement for lists of these columns; a measure that a report lacks leaves its column as it is."""
    return statement.format(
        arrays=", ".join(f"%({column})s::{_type(column)}[]" for column in columns),
        names=", ".join(f"said_{column}" for column in columns),
        mine=_MINE,
        errors=", ".join(f"{column} = said_{key}" for key, column in ERRORS.items()),
        measures="".join(f", {measured(key, f'coalesce(said_{key}, {MEASURES[key]})')}" for key in measures),
    )


def _type(column: str) -> str:
    return "text" if column in _TEXTS else _OTHERS.get(column, "bigint")


def _array(column: str, rows: list[dict[str, Any]]) -> str:
    values = [row.get(column) for row in rows]
    if _type(column) == "bigint":
        return numbers(values)
    return texts(value if value is None else str(value) for value in values)


def _explained(rows: list[dict[str, Any]]) -> dict[int, Answer]:
    """Why reports moved nothing, as `update_job` says it of one."""
    found = {n: why for n, *why in _run(_WHY, rows)}
    answers: dict[int, Answer] = {}
    for row in rows:
        status, command, mine, other_attempt = found.get(row["n"], ("", None, False, False))
        if not status:
            answers[row["n"]] = UnknownJobError(f"there is no job {row['job']}")
        elif other_attempt:
            answers[row["n"]] = OtherAttemptError(f"job {row['job']} is at another attempt")
        elif not mine:
            answers[row["n"]] = NotYoursError(f"job {row['job']} is not yours")
        else:
            answers[row["n"]] = unmoved(row["status"], status, command)
    return answers
