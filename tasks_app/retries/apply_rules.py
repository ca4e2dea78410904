"""Retry rules at work: after failures are booked, they change the files of the failed jobs, in sets.

A batch of failures that no rule knows costs one small query. What a rule changes of the task is left as a row that
`task_changes` carries out: whoever books jobs holds locks on them and must not wait for the task's row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg.types.json import Json

from jedisite.agents.passes import kick
from jedisite.database.sql import numbers, texts
from tasks_app.domain import attempt_refusal_codes
from tasks_app.domain.job_errors import ERRORS_OF_J, JobError
from tasks_app.domain.retry_rules import (
    SPARED,
    Action,
    Circumstances,
    ErrorClass,
    RetryParameters,
    RetryRule,
    RetryRuleError,
)
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.offered import MERGES
from tasks_app.retries.package_history import histories
from tasks_app.retries.rules.memory import LEAST_MERGE_MB, JobMemory, MemoryNeeds, RaisedFiles
from tasks_app.retries.rules.rule_effects import FailedJob, FileAttempts, RetryDecision, RetryTask, decide

log = structlog.get_logger(__name__)
MEMORY_ACTIONS = frozenset({Action.INCREASE_MEMORY, Action.MEMORY_XTIMES})
TASK_CODES = frozenset(
    {
        attempt_refusal_codes.RETRY_TASK_MEMORY,
        attempt_refusal_codes.RETRY_MORE_CPU_TIME,
        attempt_refusal_codes.RETRY_LESS_INPUT,
    }
)
"""Reasons that are about the whole task."""
RULE_CODES = ("NG", "MF", "RM")
"""Codes of the split rule that the rules change."""


class FailedRow(NamedTuple):
    """A failed job whose error a rule or a class knows. `errors`: [component, code, text], the most telling first;
    `merges`: it was to merge what others have written."""

    job_id: int
    task_id: int
    errors: list[list[str]]
    architecture: str | None
    release: str | None
    work_queue_id: int | None
    memory_mb: int | None
    cores: int
    max_pss_kb: int | None
    walltime_s: float
    core_power: float | None
    events: int | None
    merges: bool


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules and the errors of the system, as they are at one moment."""

    rules: tuple[RetryRule, ...]
    classes: tuple[ErrorClass, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed jobs of a batch that rules know, by task, with the rules."""

    by_task: Mapping[int, Sequence[FailedRow]] = field(default_factory=dict)
    book: RuleBook = field(default_factory=lambda: RuleBook((), ()))


# ruff: noqa: S608 - the statement of our own columns
_FIND = f"""
WITH known AS (SELECT errorsource, errorcode FROM retry_rules
               UNION SELECT errorsource, errorcode FROM error_classes WHERE active AND errorclass = 'system'
               UNION VALUES {", ".join(f"('{one.error_source}', {one.error_code})" for one in SPARED)})
SELECT j.pandaid, j.jeditaskid, coalesce(e.errors, '[]'), j.cmtconfig, j.atlasrelease, j.workqueue_id, j.minramcount,
       greatest(coalesce(j.actualcorecount, j.corecount, 1), 1), coalesce(j.maxpss, j.maxrss),
       coalesce(extract(epoch FROM j.endtime - j.starttime), 0)::float8, q.core_power, j.nevents,
       coalesce(j.processingtype = '{MERGES}', false)
  FROM jobs j LEFT JOIN queues q ON q.name = j.computingsite CROSS JOIN LATERAL (
       SELECT json_agg(json_build_array(v.component, v.code, v.diag) ORDER BY v.rank) AS errors,
              bool_or((v.component, CASE WHEN v.code ~ '^-?[0-9]{{1,10}}$' THEN v.code::bigint END)
                      IN (SELECT errorsource, errorcode FROM known)) AS hit
         FROM {ERRORS_OF_J} v) e
 WHERE j.pandaid = ANY(%s::bigint[]) AND j.jeditaskid IS NOT NULL AND (e.hit OR %s AND e.errors IS NOT NULL OR (
       SELECT w.restarts <> '{{}}' FROM workflow_packages p JOIN workflows w ON w.id = p.workflow_id
        WHERE p.jeditaskid = j.jeditaskid LIMIT 1)) ORDER BY j.pandaid
"""


def find(cursor: psycopg.Cursor[Any], failed: Sequence[int], *, every: bool = False) -> Failures:
    """The jobs among `failed` whose errors a rule or a class knows, those of workflows that limit restarts by reason, or `every`
    one with errors. These must be written."""
    if not failed:
        return Failures()
    cursor.execute(_FIND, [numbers(failed), every])
    by_task: dict[int, list[FailedRow]] = {}
    for row in cursor.fetchall():
        found = FailedRow._make(row)
        by_task.setdefault(found.task_id, []).append(found)
    return Failures(by_task, load_rules(cursor)) if by_task else Failures()


def load_rules(cursor: psycopg.Cursor[Any]) -> RuleBook:
    """All rules. One that cannot be read is left out: the pages refuse such rules and name those that are stored."""
    cursor.execute(
        """SELECT id, errorsource, errorcode, action, nullif(errordiag, ''), nullif(architecture, ''), nullif(release, ''),
                  workqueue_id, parameters, active, expiration_date FROM retry_rules ORDER BY id"""
    )
    rules = []
    for number, source, code, action, pattern, architecture, release, queue, parameters, active, expires in cursor:
        try:
            rules.append(
                RetryRule(
                    number,
                    source,
                    code,
                    Action(action),
                    pattern,
                    architecture,
                    release,
                    queue,
                    RetryParameters.parse(parameters),
                    active,
                    expires=expires,
                )
            )
        except (RetryRuleError, ValueError) as exc:
            log.warning("retry_rule.unreadable", rule=number, trouble=str(exc))
    cursor.execute(
        """SELECT errorsource, errorcode, errorclass, nullif(errordiag, '') FROM error_classes
            WHERE active AND errorclass = 'system' ORDER BY id"""
    )
    classes = []
    for source, code, name, pattern in cursor:
        try:
            classes.append(ErrorClass(source, code, name, pattern))
        except RetryRuleError as exc:
            log.warning("error_class.unreadable", source=source, code=code, trouble=str(exc))
    return RuleBook(tuple(rules), tuple(classes))


class _FileRow(NamedTuple):
    job_id: int
    dataset_id: int
    file: FileAttempts


@dataclass(slots=True)
class _Written:
    """What the decisions of one task amount to."""

    notes: list[tuple[int, str, str, bool]] = field(default_factory=list)
    files: dict[int, tuple[int, FileAttempts]] = field(default_factory=dict)
    gives_up: list[tuple[int, int]] = field(default_factory=list)
    takes_up: list[tuple[int, int]] = field(default_factory=list)
    change: dict[str, Any] = field(default_factory=dict)
    why: dict[str, None] = field(default_factory=dict)


Counts = list[tuple[int, int, int, int, int]]
"""(dataset id, finished, failed for good, ready again, events of finished) to add to what the booking counted."""


def apply(
    cursor: psycopg.Cursor[Any], task_id: int, failed: Sequence[FailedRow], book: RuleBook, now: datetime
) -> Counts:
    """Do what the rules say to the files of failed jobs of one task, which are booked already in this transaction.

    Returns what changes in the counters of their datasets.
    """
    kinds = [[row for row in failed if row.merges is merges] for merges in (False, True)]
    return [count for rows in kinds if rows for count in _apply(cursor, task_id, rows, book, now)]


def _apply(
    cursor: psycopg.Cursor[Any], task_id: int, failed: Sequence[FailedRow], book: RuleBook, now: datetime
) -> Counts:
    """The same for jobs that are all merge jobs, or none of them."""
    merges = failed[0].merges
    files = _files_of(cursor, task_id, [row.job_id for row in failed], merges)
    task = _task_of(cursor, task_id, book, merges)
    history = histories(cursor, [row.job_id for row in failed], task.restarts)
    written = _Written()
    raised_before, raised_now = task.raised, 0
    for row in failed:
        own = files.get(row.job_id, [])
        fresh = sum((f.file.ram_mb or 0) <= task.memory.ram for f in own)
        raised = replace(raised_before, raised=raised_before.raised + raised_now + fresh)
        job = _job_of(row, own, history.get(row.job_id, {}))
        decision = decide(job, replace(task, raised=raised), book.rules, book.classes, now)
        _collect(written, row, own, decision, task.rule)
        if any(change.ram_mb is not None for change in decision.files):
            raised_now += fresh
            highest = max([raised_before.highest_mb, *(c.ram_mb or 0 for c in decision.files)])
            raised_before = replace(raised_before, highest_mb=highest)
        if decision.task.ram_mb:
            # No file has more than the whole task now.
            raised_before, raised_now = replace(raised_before, raised=0), 0
        task = _after(task, decision)
    _write(cursor, task_id, written)
    lost = [(dataset, 0, 1, -1, 0) for dataset, _ in written.gives_up]
    back = [(dataset, 0, -1, 1, 0) for dataset, _ in written.takes_up]
    return lost + back


_MASTERS = "masterid IS NULL AND type IN ('input', 'pseudo_input')"
_UNMERGED = "type IN ('trn_log', 'trn_output')"
_FILES = """
SELECT c.pandaid, c.datasetid, c.fileid, coalesce(c.attemptnr, 0), c.maxattempt, coalesce(c.failedattempt, 0), c.maxfailure,
       c.ramcount
  FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = ANY(ARRAY(
           SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %(task)s AND {datasets}))
   AND c.fileid = ANY(ARRAY(SELECT f.fileid FROM job_files f WHERE f.pandaid = ANY(%(jobs)s::bigint[])
                               AND f.type IN ('input', 'pseudo_input') AND f.fileid IS NOT NULL))
   AND c.pandaid = ANY(%(jobs)s::bigint[]) AND c.status = 'ready' AND c.keeptrack = 1
 ORDER BY c.fileid
"""


def _files_of(
    cursor: psycopg.Cursor[Any], task_id: int, jobs: Sequence[int], merges: bool
) -> dict[int, list[_FileRow]]:
    """The master files that failed with each job; of a merge job all, since it takes or leaves all that one job wrote."""
    cursor.execute(_FILES.format(datasets=_UNMERGED if merges else _MASTERS), {"task": task_id, "jobs": numbers(jobs)})
    found: dict[int, list[_FileRow]] = {}
    for job_id, dataset_id, *values in cursor:
        found.setdefault(job_id, []).append(_FileRow(job_id, dataset_id, FileAttempts(*values)))
    return found


def _task_of(cursor: psycopg.Cursor[Any], task_id: int, book: RuleBook, merges: bool) -> RetryTask:
    """A task as the rules see it; what its merge jobs need is other memory, without a base."""
    cursor.execute(
        """SELECT splitrule, coalesce(ramcount, 0), coalesce(ramunit, 'MB'), coalesce(baseramcount, 0), cputime,
                  coalesce(cputimeunit, 'HS06sPerEvent'), coalesce(cpuefficiency, 90), coalesce(basewalltime, 0),
                  EXISTS (SELECT 1 FROM jobs j WHERE j.jeditaskid = %(task)s AND j.jobstatus = 'finished'
                             AND j.prodsourcelabel IS DISTINCT FROM 'panda'), mergeramcount, mergeramunit,
                  (SELECT w.restarts::json FROM workflow_packages p JOIN workflows w ON w.id = p.workflow_id
                    WHERE p.jeditaskid = %(task)s LIMIT 1)
             FROM jedi_tasks WHERE jeditaskid = %(task)s""",
        {"task": task_id},
    )
    row = cursor.fetchone()
    assert row is not None, f"there is no task {task_id}"
    rule, ram, unit, base, cpu_time, cpu_unit, efficiency, base_s, finished, merge_ram, merge_unit, restarts = row
    needs = MemoryNeeds(merge_ram or LEAST_MERGE_MB, merge_unit or "MB") if merges else MemoryNeeds(ram, unit, base)
    raised = RaisedFiles()
    if any(rule.action in MEMORY_ACTIONS for rule in book.rules):
        raised = _raised_unmerged(cursor, task_id, needs.ram) if merges else _raised(cursor, task_id, ram)
    return RetryTask(
        SplitRule.parse(rule), needs, raised, cpu_time, cpu_unit, efficiency, base_s, finished, merges, restarts or {}
    )


def _raised(cursor: psycopg.Cursor[Any], task_id: int, ram: int) -> RaisedFiles:
    """Only files up to the cursor can have been tried, or any where it stands still."""
    cursor.execute(
        """SELECT coalesce(sum(r.raised), 0)::bigint, coalesce(sum(d.nfiles), 0)::bigint, coalesce(max(r.highest), 0)
             FROM jedi_datasets d CROSS JOIN LATERAL (
                  SELECT count(*) FILTER (WHERE c.ramcount > %(ram)s) AS raised, max(c.ramcount) AS highest
                    FROM jedi_dataset_contents c
                   WHERE c.jeditaskid = %(task)s AND c.datasetid = d.datasetid AND c.ramcount > 0
                     AND (c.fileid <= d.pick_cursor OR d.pick_cursor = 0)) r
            WHERE d.jeditaskid = %(task)s AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')""",
        {"task": task_id, "ram": ram},
    )
    row = cursor.fetchone()
    return RaisedFiles(*row) if row else RaisedFiles()


def _raised_unmerged(cursor: psycopg.Cursor[Any], task_id: int, ram: int) -> RaisedFiles:
    cursor.execute(
        f"""SELECT count(*) FILTER (WHERE ramcount > %(ram)s), count(*), coalesce(max(ramcount), 0)
              FROM jedi_dataset_contents WHERE jeditaskid = %(task)s AND status <> 'defined' AND datasetid = ANY(ARRAY(
                   SELECT datasetid FROM jedi_datasets WHERE jeditaskid = %(task)s AND {_UNMERGED}))""",
        {"task": task_id, "ram": ram},
    )
    row = cursor.fetchone()
    return RaisedFiles(*row) if row else RaisedFiles()


def _job_of(row: FailedRow, files: Sequence[_FileRow], history: Mapping[str, int]) -> FailedJob:
    memory = JobMemory(row.memory_mb or 0, row.cores, row.max_pss_kb)
    return FailedJob(
        tuple(JobError(*error) for error in row.errors),
        tuple(f.file for f in files),
        Circumstances(row.architecture, row.release, row.work_queue_id),
        history,
        memory,
        row.walltime_s,
        row.core_power or 10.0,
        row.events or 0,
    )


def _collect(
    written: _Written, row: FailedRow, own: Sequence[_FileRow], decision: RetryDecision, rule: SplitRule
) -> None:
    place = {f.file.file_id: f for f in own}
    for change in decision.files:
        known = place[change.file_id]
        given = {n: v for n in ("max_attempt", "max_failure", "ram_mb") if (v := getattr(change, n)) is not None}
        written.files[change.file_id] = (known.dataset_id, replace(known.file, **given))
    written.gives_up += [(place[i].dataset_id, i) for i in decision.gives_up]
    written.takes_up += [(place[i].dataset_id, i) for i in decision.takes_up]
    written.notes += [(row.job_id, r.code, r.detail, True) for r in decision.reasons]
    written.notes += [(row.job_id, r.code, r.detail, False) for r in decision.recorded]
    task = decision.task
    changed = {
        "mergeramcount" if row.merges else "ramcount": task.ram_mb,
        "cputime": task.cpu_time,
        "cputimeunit": task.cpu_time_unit,
    }
    written.change |= {name: value for name, value in changed.items() if value is not None}
    if task.measure_again:
        written.change["measure_again"] = True
    if task.rule is not None:
        new = {code: value for code in RULE_CODES if (value := task.rule.get_str(code)) != rule.get_str(code)}
        written.change["rule"] = {**written.change.get("rule", {}), **new}
    written.why |= {r.detail: None for r in decision.reasons if r.code in TASK_CODES}


def _after(task: RetryTask, decision: RetryDecision) -> RetryTask:
    """The task as the next decision of the batch finds it."""
    change = decision.task
    memory = task.memory if change.ram_mb is None else replace(task.memory, ram=change.ram_mb)
    return replace(
        task,
        memory=memory,
        rule=change.rule or task.rule,
        cpu_time=task.cpu_time if change.cpu_time is None else change.cpu_time,
        cpu_time_unit=change.cpu_time_unit or task.cpu_time_unit,
    )


def _write(cursor: psycopg.Cursor[Any], task_id: int, written: _Written) -> None:
    if written.files:
        rows = sorted(written.files.values(), key=lambda row: row[1].file_id)
        datasets, files = zip(*rows, strict=True)
        cursor.execute(
            """UPDATE jedi_dataset_contents c SET maxattempt = CASE WHEN n.attempts > 32767 THEN 32767 ELSE n.attempts END,
                      maxfailure = CASE WHEN n.failures > 32767 THEN 32767 ELSE n.failures END, ramcount = n.ram
                 FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::int[], %s::int[]) n (dataset, file, attempts,
                      failures, ram)
                WHERE c.jeditaskid = %s AND c.datasetid = n.dataset AND c.fileid = n.file""",
            [
                numbers(datasets),
                numbers(f.file_id for f in files),
                numbers(f.max_attempt for f in files),
                numbers(f.max_failure for f in files),
                numbers(f.ram_mb for f in files),
                task_id,
            ],
        )
    if written.gives_up:
        cursor.execute("DELETE FROM file_retries WHERE fileid = ANY(%s)", [[f for _, f in written.gives_up]])
    if written.takes_up:
        cursor.execute(
            """INSERT INTO file_retries (fileid, jeditaskid, datasetid)
               SELECT n.file, %s, n.dataset FROM unnest(%s::bigint[], %s::bigint[]) n (dataset, file)
               ON CONFLICT DO NOTHING""",
            [task_id, *_columns(written.takes_up)],
        )
    if written.notes:
        jobs, reasons, details, applied = zip(*written.notes, strict=True)
        cursor.execute(
            """INSERT INTO job_retry_notes (jeditaskid, pandaid, code, detail, applied, at)
               SELECT %s, n.job, n.code, n.detail, n.applied, clock_timestamp()
                 FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::bool[]) n (job, code, detail, applied)""",
            [task_id, numbers(jobs), texts(reasons), texts(details), numbers(applied)],
        )
    if written.change:
        cursor.execute(
            "INSERT INTO task_changes_due (jeditaskid, change, reason, at) VALUES (%s, %s, %s, clock_timestamp())",
            [task_id, Json(written.change), "; ".join(list(written.why)[:3])],
        )
        kick("adder")


def _columns(pairs: Iterable[tuple[int, int]]) -> list[str]:
    datasets, files = zip(*pairs, strict=True)
    return [numbers(datasets), numbers(files)]
