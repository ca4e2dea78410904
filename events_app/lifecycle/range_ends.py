"""What the end of a job makes of its ranges: done, released, or copied to be tried again; and what is then left of its files.

The job's row is locked by whoever ends it. Two statements, whatever the number of ranges.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import psycopg

from events_app.lifecycle.range_moves import RANGES, after, before, is_in
from events_app.rules.event_states import AT_WORK, HANDED_OUT, EventAct, EventStatus
from jedisite.database.sql import numbers

S = EventStatus
# ruff: noqa: S608 - every piece is a constant of ours
_OF_BLOCK: Final = "(e.def_max_eventid - e.def_min_eventid) / e.events_per_range + 1"
# A copy of what failed goes back to its jobset with one attempt less; PROCESSED_UPTO says whether that has been done. One that
# has none left says why.
_COPY: Final = f"""
    INSERT INTO jedi_events (jeditaskid, datasetid, fileid, pandaid, event_offset, job_processid, def_min_eventid,
           def_max_eventid, events_per_range, processed_upto_eventid, attemptnr, status, error_code, error_diag)
    SELECT jeditaskid, datasetid, fileid, event_offset, event_offset, def_min_eventid, def_min_eventid, def_max_eventid,
           events_per_range, 0, greatest(attemptnr - {{less}}, 0), {after(EventAct.RETRY)},
           CASE WHEN attemptnr <= {{less}} THEN error_code END, CASE WHEN attemptnr <= {{less}} THEN error_diag END
      FROM {{failed}} WHERE {before(EventAct.RETRY)} AND processed_upto_eventid IS NOT NULL"""
# Of ranges that nobody reports, those lose an attempt with which the job has begun, if it has said so of any; else all.
_MAY_HAVE_BEGUN: Final = (
    f"({is_in({S.RUNNING}, 'm.')} OR NOT EXISTS (SELECT FROM mine b WHERE {is_in({S.RUNNING}, 'b.')}))"
)
_END: Final = f"""
WITH mine AS MATERIALIZED (
    SELECT * FROM jedi_events WHERE jeditaskid = %(task)s AND pandaid = %(job)s
       AND {is_in({*HANDED_OUT, S.FINISHED, S.FAILED})} ORDER BY row_id FOR UPDATE),
done AS (
    UPDATE jedi_events e SET status = {after(EventAct.COMPLETE)}
      FROM mine m WHERE e.jeditaskid = %(task)s AND e.row_id = m.row_id AND %(completes)s
       AND {before(EventAct.COMPLETE, row="m.")}
    RETURNING {_OF_BLOCK} AS ranges),
released AS (
    UPDATE jedi_events e SET status = {after(EventAct.RELEASE)}, pandaid = e.event_offset, is_jumbo = NULL,
           attemptnr = e.attemptnr - l.less,
           error_diag = CASE WHEN l.less > 0 AND l.less >= e.attemptnr
                             THEN 'job ' || %(job)s::bigint || ' ended without a report on it' END
      FROM mine m
     CROSS JOIN LATERAL (SELECT CASE WHEN {_MAY_HAVE_BEGUN} THEN least(%(less)s::int, m.attemptnr) ELSE 0 END) l (less)
     WHERE e.jeditaskid = %(task)s AND e.row_id = m.row_id AND {before(EventAct.RELEASE, row="m.")}
    RETURNING {_OF_BLOCK} AS ranges),
copied AS ({_COPY.format(failed="mine", less="%(failed_less)s")} AND %(handles)s),
handled AS (
    UPDATE jedi_events e SET processed_upto_eventid = NULL
      FROM mine m WHERE e.jeditaskid = %(task)s AND e.row_id = m.row_id AND {before(EventAct.RETRY, row="m.")} AND %(handles)s)
SELECT (SELECT coalesce(sum(ranges), 0) FROM done), (SELECT coalesce(sum(ranges), 0) FROM released)
"""
# What jumbo jobs have processed of the files of a job that waited for them; what failed there is this job's from now on, and
# says in which of them.
_FROM_JUMBO: Final = f"""
WITH theirs AS MATERIALIZED (
    SELECT * FROM jedi_events WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND is_jumbo = 1
       AND {is_in({S.FINISHED, S.FAILED})} ORDER BY row_id FOR UPDATE),
done AS (
    UPDATE jedi_events e SET status = {after(EventAct.COMPLETE)}
      FROM theirs t WHERE e.jeditaskid = %(task)s AND e.row_id = t.row_id AND {before(EventAct.COMPLETE, row="t.")}
    RETURNING {_OF_BLOCK} AS ranges),
copied AS ({_COPY.format(failed="theirs", less=1)}),
handled AS (
    UPDATE jedi_events e SET processed_upto_eventid = NULL, pandaid = %(job)s,
           error_diag = left(concat_ws(': ', 'in jumbo job ' || e.pandaid, nullif(e.error_diag, '')), 500)
      FROM theirs t WHERE e.jeditaskid = %(task)s AND e.row_id = t.row_id AND {before(EventAct.RETRY, row="t.")}
       AND t.processed_upto_eventid IS NOT NULL)
SELECT coalesce(sum(ranges), 0) FROM done
"""
_GIVE_UP: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.GIVE_UP)}
 WHERE jeditaskid = %(task)s AND pandaid = %(jobset)s AND {before(EventAct.GIVE_UP)} AND attemptnr <= 0
"""
_LEFT: Final = f"""
SELECT coalesce(sum({RANGES}) FILTER (WHERE pandaid = %(jobset)s AND {is_in({S.READY})} AND attemptnr > 0), 0),
       coalesce(bool_or(({is_in(AT_WORK)} AND attemptnr > 0)
                        OR ({is_in({S.FAILED})} AND processed_upto_eventid IS NOT NULL)), false),
       coalesce(bool_or({is_in({S.DONE})}), false),
       coalesce(sum({RANGES}) FILTER (WHERE attemptnr <= 0 AND NOT {is_in({S.CANCELLED, S.DISCARDED})}), 0)
  FROM jedi_events WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[])
"""


class Ended(NamedTuple):
    """How many ranges of a job are done, how many went back, and how many jumbo jobs have done of its files."""

    done: int
    released: int
    from_jumbo: int = 0


class Left(NamedTuple):
    """What is left of the ranges of some files: `ready` in the jobset, and whether `others` have any.

    `hopeless` ranges have no attempt left.
    """

    ready: int
    others: bool
    any_done: bool
    hopeless: int


_COMPLETING: Final = {"completes": True, "handles": True, "failed_less": 1}
_ONLY_GIVING_BACK: Final = {"completes": False, "handles": False}


def end_consumer(
    cursor: psycopg.Cursor[Any],
    task_id: int,
    job_id: int,
    *,
    only_failed_count: bool,
    waited_for_jumbo: Collection[int] = (),
) -> Ended:
    """The ranges of a consumer after its end: those that it finished are done, the others can be handed out again.

    `only_failed_count`: what it leaves unprocessed keeps its attempts. `waited_for_jumbo`: files of which jumbo jobs may
    have processed ranges for it.
    """
    values = {"task": task_id, "job": job_id, "files": numbers(waited_for_jumbo)}
    from_jumbo = 0
    if waited_for_jumbo:
        cursor.execute(_FROM_JUMBO, values)
        from_jumbo = _one(cursor)[0]
    cursor.execute(_END, {**values, "less": 0 if only_failed_count else 1, **_COMPLETING})
    done, released = _one(cursor)
    return Ended(int(done), int(released), int(from_jumbo))


def end_jumbo(cursor: psycopg.Cursor[Any], task_id: int, job_id: int, *, only_failed_count: bool) -> Ended:
    """A jumbo job gives back what it has not processed; the rest stays until the jobs of its files have ended."""
    less = 0 if only_failed_count else 1
    cursor.execute(_END, {"task": task_id, "job": job_id, "less": less, **_COMPLETING, **_ONLY_GIVING_BACK})
    done, released = _one(cursor)
    return Ended(int(done), int(released))


def give_back(cursor: psycopg.Cursor[Any], task_id: int, job_id: int) -> None:
    """A clone or a fine-grained job gives back all that it has not finished, with the attempts that it has."""
    values = {"completes": False, "handles": True, "failed_less": 0, "less": 0}
    cursor.execute(_END, {"task": task_id, "job": job_id, **values})


_COMPLETE: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.COMPLETE)}
 WHERE jeditaskid = %(task)s AND fileid = ANY(%(files)s::bigint[]) AND {before(EventAct.COMPLETE)}
"""


def complete_files(cursor: psycopg.Cursor[Any], task_id: int, files: Collection[int]) -> None:
    """What is finished of these files is done: nobody is at work on them."""
    cursor.execute(_COMPLETE, {"task": task_id, "files": numbers(files)})


_GIVE_UP_REST: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.GIVE_UP)}
 WHERE jeditaskid = %(task)s AND pandaid = %(jobset)s AND {before(EventAct.GIVE_UP)}
"""


def give_up_rest(cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int) -> None:
    """What is ready of a jobset is given up: no job follows that could process it."""
    cursor.execute(_GIVE_UP_REST, {"task": task_id, "jobset": jobset_id})


_FINISHED_AND_READY: Final = f"""
SELECT coalesce(sum({RANGES}) FILTER (WHERE pandaid = %(job)s AND {is_in({S.FINISHED})}), 0),
       coalesce(sum({RANGES}) FILTER (WHERE pandaid = %(jobset)s AND {is_in({S.READY})}), 0)
  FROM jedi_events WHERE jeditaskid = %(task)s AND pandaid IN (%(job)s, %(jobset)s)
"""


def finished_and_ready(cursor: psycopg.Cursor[Any], task_id: int, job_id: int, jobset_id: int) -> tuple[int, int]:
    """How many ranges a job has finished, and how many of its jobset are ready."""
    cursor.execute(_FINISHED_AND_READY, {"task": task_id, "job": job_id, "jobset": jobset_id})
    finished, ready = _one(cursor)
    return int(finished), int(ready)


_FINISH: Final = f"""
UPDATE jedi_events SET status = {after(EventAct.FINISH)}, pandaid = %(job)s
 WHERE jeditaskid = %(task)s AND pandaid IN (%(job)s, %(jobset)s) AND {before(EventAct.FINISH)}
"""


def finish_clone(cursor: psycopg.Cursor[Any], task_id: int, job_id: int, jobset_id: int) -> bool:
    """A clone has processed the one range of its jobset. False where another clone has it."""
    cursor.execute(_FINISH, {"task": task_id, "job": job_id, "jobset": jobset_id})
    return cursor.rowcount > 0


def what_is_left(
    cursor: psycopg.Cursor[Any], task_id: int, jobset_id: int, files: Collection[int], *, accepts_partial: bool
) -> Left:
    """What is left of the ranges of the files of a jobset. Where a partial result is accepted, hopeless ones become fatal."""
    values = {"task": task_id, "jobset": jobset_id, "files": numbers(files)}
    if accepts_partial:
        cursor.execute(_GIVE_UP, values)
    cursor.execute(_LEFT, values)
    ready, others, any_done, hopeless = _one(cursor)
    return Left(int(ready), others, any_done, int(hopeless))


def _one(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return row
