"""Hot path: the ends of jobs are booked on jobs, files, datasets and the catalogue, in sets.

Each input file counts for the attempt that ran it: a row is written only while it still names the job.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from django.db import transaction
from django.utils import timezone

from jedisite.agents.passes import kick
from jedisite.database.sql import hash_joins, numbers, texts
from tasks_app.ddm import data_management
from tasks_app.ddm.base import NewFile
from tasks_app.domain import range_jobs
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.inputs import readers
from tasks_app.lifecycle import file_ends, outbox
from tasks_app.lifecycle.job_ends import JobEnd, write_ends
from tasks_app.outcomes import end_hooks, unmerged, unmerged_events, unstored
from tasks_app.outcomes.end_hooks import Ending, Ends, EventJob
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.left_logs import left_logs
from tasks_app.refining.offered import MERGES
from tasks_app.retries import apply_rules
from tasks_app.retries.rules.rule_effects import MOST_SPARED

MOST_EVENTS = 2**40
"""No single file has more; so sums of many reports stay within the columns."""


COMPONENTS = {
    "pilot": ("piloterrorcode", "piloterrordiag"),
    "ddm": ("ddmerrorcode", "ddmerrordiag"),
    "sup": ("superrorcode", "superrordiag"),
    "jobdispatcher": ("jobdispatchererrorcode", "jobdispatchererrordiag"),
    "taskbuffer": ("taskbuffererrorcode", "taskbuffererrordiag"),
}


def book(cursor: psycopg.Cursor[Any], outcomes: Iterable[Outcome], now: datetime | None = None) -> int:
    """Book the ends of jobs, in the caller's transaction. A job that has ended already is left alone, and so is one
    whose output a merge job has taken: what becomes of it depends on that.

    Retry rules then do what they say to the files of failed jobs; `now` is the time by which rules expire. Returns the
    number of jobs that ended by this call.
    """
    wanted = {o.job_id: o for o in outcomes}
    before = _lock(cursor, wanted)
    _add_left_logs(cursor, wanted, before)
    more = _end_event_jobs(cursor, wanted, before)
    ended = _end_jobs(cursor, wanted)
    by_task: dict[int, list[Outcome]] = {}
    for job_id in ended:
        outcome = wanted[job_id]
        if outcome.task_id is not None:
            by_task.setdefault(outcome.task_id, []).append(outcome)
    failed = [i for i in ended if wanted[i].status == JobStatus.FAILED]
    failures = apply_rules.find(cursor, failed)
    new_files: list[NewFile] = []
    for task_id in sorted(by_task):
        _book_task(cursor, task_id, by_task[task_id], before, failures, now or timezone.now(), more)
        new_files += [f for o in by_task[task_id] for f in _new_files(o, before[o.job_id].owner)]
    unstored.note(cursor, unstored.among(failures), now or timezone.now())
    unstored.note_stored(cursor, [i for i in ended if wanted[i].stored and wanted[i].status != JobStatus.FAILED])
    _tell(cursor, by_task, more.jobs)
    data_management().add(new_files)
    if new_files:
        # After the commit: a child's datasets may stand before those that are locked here.
        datasets = {f.dataset for f in new_files}
        transaction.on_commit(lambda: readers.look_again(datasets))
    kick("post_processor", "job_generator", "commando", "merger")
    return len(ended)


def _tell(
    cursor: psycopg.Cursor[Any], by_task: Mapping[int, list[Outcome]], new_jobs: Mapping[int, Sequence[int]]
) -> None:
    """Tell the ends of the jobs whose tasks want that, and which jobs follow them."""
    tasks = outbox.pushing(cursor, by_task) if by_task else []
    if tasks:
        ended = [outcome.job_id for task in tasks for outcome in by_task[task]]
        outbox.jobs_changed(cursor, [*ended, *(job for task in tasks for job in new_jobs.get(task, ()))])


class Before(NamedTuple):
    """What a job was before its end: its state, whether it is a merge job, the owner of its task, and of a job of event
    service the fields of `EventJob` that follow its status, as JSON."""

    status: str
    merges: bool
    owner: str
    events: str | None

    @property
    def is_fine(self) -> bool:
        """Whether its events are processed one by one, and merged at the end of the last job of its file."""
        return self.events is not None and json.loads(self.events)[0] == range_jobs.FINE


def _lock(cursor: psycopg.Cursor[Any], wanted: dict[int, Outcome]) -> dict[int, Before]:
    """Lock the jobs, and take those out of `wanted` whose output a merge job has."""
    cursor.execute(
        f"""SELECT pandaid, jobstatus, processingtype IS NOT DISTINCT FROM %s, coalesce(produsername, ''), {end_hooks.EVENT_JOB}
              FROM jobs WHERE pandaid = ANY(%s) ORDER BY pandaid FOR UPDATE""",  # noqa: S608 - a constant of ours
        [MERGES, sorted(wanted)],
    )
    before = {row[0]: Before(*row[1:]) for row in cursor}
    waiting = [i for i, b in before.items() if b.status == JobStatus.MERGING and not wanted[i].merge_is_over]
    for job_id in unmerged.in_merge_jobs(cursor, waiting) if waiting else ():
        del wanted[job_id]
    return before


def _end_event_jobs(cursor: psycopg.Cursor[Any], wanted: dict[int, Outcome], before: Mapping[int, Before]) -> Ends:
    """Ask what the ends of jobs of event service become. Those that cannot end now are taken out of `wanted`."""
    asked = []
    for job_id, row in before.items():
        outcome = wanted.get(job_id)
        if row.events is not None and outcome is not None and outcome.task_id and row.status not in JOB_FINAL:
            asked.append(Ending(outcome, EventJob(job_id, outcome.task_id, row.status, *json.loads(row.events))))
    ends = end_hooks.ends(cursor, asked)
    for ending in asked:
        del wanted[ending.job.job_id]
    wanted.update((outcome.job_id, outcome) for outcome in ends.outcomes)
    return ends


def _add_left_logs(cursor: psycopg.Cursor[Any], wanted: dict[int, Outcome], before: Mapping[int, Before]) -> None:
    """Whoever ends a job whose outputs are being gathered, its log is kept."""
    stopped = [
        job_id
        for job_id, row in before.items()
        if row.status == JobStatus.TRANSFERRING and wanted[job_id].status != JobStatus.FINISHED
    ]
    for job_id, stored in (left_logs(cursor, stopped) if stopped else {}).items():
        wanted[job_id] = replace(wanted[job_id], stored=stored)


def _end_jobs(cursor: psycopg.Cursor[Any], wanted: Mapping[int, Outcome]) -> list[int]:
    ends = [JobEnd(i, o.status, sum(r["fsize"] for _, r in o.stored), o.by, o.diag) for i, o in sorted(wanted.items())]
    ended = write_ends(cursor, ends)
    for component, (code_column, diag_column) in COMPONENTS.items():
        hit = [(i, error) for i in ended for error in wanted[i].errors if error.component == component]
        if hit:
            cursor.execute(
                f"""UPDATE jobs j SET {code_column} = e.code, {diag_column} = left(e.diag, 500)
                      FROM unnest(%s::bigint[], %s::int[], %s::text[]) e (id, code, diag) WHERE j.pandaid = e.id""",  # noqa: S608
                [[i for i, _ in hit], [error.code for _, error in hit], [error.diag for _, error in hit]],
            )
    sub = [wanted[i] for i in ended if wanted[i].sub_status is not None]
    if sub:
        cursor.execute(
            """UPDATE jobs j SET jobsubstatus = e.sub FROM unnest(%s::bigint[], %s::text[]) e (id, sub)
                WHERE j.pandaid = e.id""",
            [[o.job_id for o in sub], [o.sub_status for o in sub]],
        )
    return ended


def _book_task(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    outcomes: list[Outcome],
    before: Mapping[int, Before],
    failures: apply_rules.Failures,
    now: datetime,
    ends: Ends,
) -> None:
    new_logs = ends.logs.get(task_id, {})
    held = [o for o in outcomes if o.status == JobStatus.MERGING and o.has_files]
    freed = [o for o in outcomes if before[o.job_id].status == JobStatus.MERGING]
    others = [o for o in outcomes if JobStatus.MERGING not in (o.status, before[o.job_id].status)]
    decided = [
        o
        for o in outcomes
        if (o.status != JobStatus.MERGING or not o.has_files)
        and not o.merge_is_over
        and not (before[o.job_id].events and before[o.job_id].status == JobStatus.MERGING)
    ]
    merges = [o.job_id for o in outcomes if before[o.job_id].merges]
    counts = _inputs_of(cursor, task_id, others, ends.partial.get(task_id, ()))
    back = _inputs_of(cursor, task_id, freed)
    if task_id in failures.by_task:
        known = failures.by_task[task_id]
        counts += apply_rules.apply(cursor, task_id, known, failures.book, now)
        fine = [row.job_id for row in known if before[row.job_id].is_fine]
        counts += unmerged_events.keep_an_attempt(cursor, task_id, fine)
    counts += back
    if decided:
        counts += _book_outputs(cursor, task_id, decided)
    on_hold: Counter[int] = Counter()
    for dataset_id, won, lost, again, _ in back:
        on_hold[dataset_id] -= won + lost + again
    if held:
        counts += unmerged.hold(cursor, task_id, [o.job_id for o in held], _stored_values(held))
        on_hold.update(unmerged.inputs_of(cursor, task_id, [o.job_id for o in held]))
    if freed:
        unmerged.withdraw(cursor, [o.job_id for o in freed])
    if merges:
        unmerged.conclude(cursor, task_id, merges)
    counts += [(dataset_id, 0, 0, 0, -events) for dataset_id, events in ends.unused.get(task_id, {}).items()]
    _count(cursor, [*counts, *((dataset_id, 0, 0, 0, 0) for dataset_id in (*on_hold, *new_logs))])
    if on_hold:
        unmerged.count_on_hold(cursor, on_hold)
    if new_logs:
        count_new(cursor, new_logs)


def _inputs_of(
    cursor: psycopg.Cursor[Any], task_id: int, outcomes: list[Outcome], partial: Collection[int] = ()
) -> list[tuple[int, int, int, int, int]]:
    if not outcomes:
        return []
    ids = [o.job_id for o in outcomes]
    won = [o.status == JobStatus.FINISHED and not o.inputs_again for o in outcomes]
    failed = [o.status == JobStatus.FAILED for o in outcomes]
    spared = [o.spares_attempt for o in outcomes]
    return _book_inputs(cursor, task_id, ids, won, failed, spared, partial)


_READ = """
SELECT f.datasetid, min(f.fileid), max(f.fileid) FROM job_files f
 WHERE f.pandaid = ANY(%(ids)s::bigint[]) AND f.type IN ('input', 'pseudo_input', 'random_seed') AND f.fileid IS NOT NULL
 GROUP BY f.datasetid ORDER BY f.datasetid
"""


def _book_inputs(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    ids: list[int],
    won: list[bool],
    failed: list[bool],
    spared: list[bool],
    partial: Collection[int],
) -> list[tuple[int, int, int, int, int]]:
    """Rows of (dataset id, finished, failed for good, ready again, events of finished). `ids` ascend."""
    cursor.execute(_READ, {"ids": numbers(ids)})
    found = []
    for dataset_id, first, last in cursor.fetchall():
        flags = {"won": numbers(won), "failed": numbers(failed), "spared": numbers(spared), "most_spared": MOST_SPARED}
        values = {"ids": numbers(ids), **flags, "task": task_id, "partial": numbers(partial)}
        cursor.execute(file_ends.BOOK_INPUTS, {**values, "dataset": dataset_id, "first": first, "last": last})
        found += cursor.fetchall()
    return found


def _book_outputs(
    cursor: psycopg.Cursor[Any], task_id: int, outcomes: list[Outcome]
) -> list[tuple[int, int, int, int, int]]:
    values = {
        "ids": numbers(o.job_id for o in outcomes),
        "statuses": texts(
            JobStatus.FINISHED if o.status == JobStatus.MERGING or not o.outputs_needed else o.status for o in outcomes
        ),
        "task": task_id,
        **_stored_values(outcomes),
    }
    with hash_joins(cursor):
        cursor.execute(file_ends.BOOK_OUTPUTS, values)
        return cursor.fetchall()


def _stored_values(outcomes: list[Outcome]) -> dict[str, Any]:
    """What pilots said of the files that they stored, a column each, in parallel."""
    stored = [(o.file_id, r) for outcome in outcomes for o, r in outcome.stored]
    return {
        "files": numbers(f for f, _ in stored),
        "sizes": numbers(r["fsize"] for _, r in stored),
        "sums": texts("ad:" + r["adler32"] for _, r in stored),
        "guids": texts(_text(r.get("guid"), 64) for _, r in stored),
        "events": numbers(_number(r.get("nevents")) for _, r in stored),
        "surls": texts(r["surl"] for _, r in stored),
    }


def _count(cursor: psycopg.Cursor[Any], counts: list[tuple[int, int, int, int, int]]) -> None:
    """Add to the counters of datasets: finished, failed, and no longer used since they are ready again."""
    sums: dict[int, list[int]] = {}
    for dataset_id, *more in counts:
        known = sums.setdefault(dataset_id, [0] * len(more))
        # Sums of the server come as decimal numbers.
        sums[dataset_id] = [a + int(b) for a, b in zip(known, more, strict=True)]
    rows = [(dataset_id, *sums[dataset_id]) for dataset_id in sorted(sums)]
    if not rows:
        return
    cursor.execute(
        "SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [[r[0] for r in rows]]
    )
    cursor.execute(
        """UPDATE jedi_datasets d SET nfilesfinished = nfilesfinished + n.won, nfilesfailed = nfilesfailed + n.lost,
                  nfilesused = nfilesused - n.again, neventsused = coalesce(neventsused, 0) + n.events,
                  modificationtime = clock_timestamp()
             FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) n (id, won, lost, again, events)
            WHERE d.datasetid = n.id RETURNING d.type""",
        [list(column) for column in zip(*rows, strict=True)],
    )
    if any(type_ == "lib" for (type_,) in cursor.fetchall()):
        kick("libraries")  # jobs may wait for what was built


def count_new(cursor: psycopg.Cursor[Any], records: Mapping[int, int]) -> None:
    """Count records that jobs have got which were made here; the datasets are locked already."""
    cursor.execute(
        """UPDATE jedi_datasets d SET nfiles = nfiles + n.new, nfilestobeused = nfilestobeused + n.new,
                  nfilesused = nfilesused + n.new
             FROM unnest(%s::bigint[], %s::bigint[]) n (id, new) WHERE d.datasetid = n.id""",
        [list(column) for column in zip(*sorted(records.items()), strict=True)],
    )


def _new_files(outcome: Outcome, owner: str) -> list[NewFile]:
    return [
        NewFile(
            o.dataset,
            o.lfn,
            o.scope,
            _text(r.get("guid"), 64) or "",
            r["fsize"],
            r["adler32"],
            _number(r.get("nevents")),
            o.endpoint,
            r["surl"],
            owner,
        )
        for o, r in outcome.stored
    ]


def _text(value: Any, length: int) -> str | None:
    return value[:length] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    """A number of events; None when it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_EVENTS else None
