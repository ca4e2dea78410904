"""The door for the states of files: what commands make of a task's files, in sets, and the condition that all doors share.

No other statement changes the state of a stored file than those of this module and of those beside it: `file_uses` (jobs
get files), `file_ends` (jobs end), `file_availability` (data management has files or not) and `file_recovery` (what was
lost is made again). Each says in its WHERE from which states it moves, made from the table of moves, so that a move which
`FILE_MOVES` does not allow changes no row. New files are stored by `inputs` and `generation`: nothing moves there.

Locks are taken in the order of everybody: the task's row first (by the caller), files, then datasets by id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from tasks_app.domain.states import DATASET_MOVES, FILE_MOVES, DatasetStatus, FileStatus
from tasks_app.lifecycle import attempts
from tasks_app.lifecycle.conditions import is_one_of, may_become, not_dropped
from tasks_app.lifecycle.dataset_moves import status_as

F = FileStatus
INPUT: Final = ("input",)
OUTPUT: Final = ("output",)
EITHER: Final = (*INPUT, *OUTPUT)
"""Which table of moves is asked: that of files that a task reads, of those that it makes, or both."""


def before(
    tables: Iterable[str], *news: FileStatus, among: Collection[FileStatus] = tuple(FileStatus), row: str = ""
) -> str:
    """SQL: a file is in one of the states `among`, and may become each of `news` from there, as all the `tables` have it.

    `row` is its alias with a dot.
    """
    olds = (may_become(FILE_MOVES[table], news) for table in tables)
    return is_one_of(f"{row}status", set(among).intersection(*olds))


# ruff: noqa: S608 - every piece is a constant of this module
_INPUTS = "('input', 'pseudo_input', 'pp_input')"
_READ = "('input', 'pseudo_input', 'pp_input', 'random_seed')"
MOST = 32767
"""The highest limit on attempts or failures that the books can hold."""
_STAGING = before(INPUT, F.PENDING, among=[F.STAGING])
_WAITS = before(INPUT, F.READY, among=[F.PENDING, F.STAGING])
_MISSES_FILES = """EXISTS (SELECT FROM jedi_dataset_contents x WHERE x.jeditaskid = {0}.jeditaskid
                                 AND x.datasetid = {0}.datasetid AND x.status = 'missing')"""
_MORE = f"""
    maxattempt = CASE WHEN {attempts.NONE_LEFT} AND c.maxattempt < {MOST} - %(more)s
                      THEN greatest(c.maxattempt, c.attemptnr) + %(more)s ELSE c.maxattempt END,
    maxfailure = CASE WHEN {attempts.NONE_LEFT} AND c.maxfailure < {MOST} - %(more)s
                      THEN greatest(c.maxfailure, c.failedattempt) + %(more)s ELSE c.maxfailure END"""
"""Where there is no limit, none is made."""


class Reopened(NamedTuple):
    """What is left to process in master inputs: files, and whether more may come."""

    files: int
    growing: bool


def reopen(task_id: int, *, incremental: bool, groups: Collection[int] | None = None) -> Reopened:
    """Open a task's input again: files without attempts get more, lost jobs give their files back; with `groups` of these only.

    A retry touches masters that are not processed completely, and what goes with them, and has what could not be staged
    from tape staged again; an incremental execution all
    inputs, which are then looked up again, and also files that were lost or missing.
    """
    values = _values(task_id, incremental, groups)
    with connection.cursor() as cursor:
        values["datasets"] = _to_open(cursor, values)
        _open(cursor, values)
        cursor.execute(
            f"""SELECT coalesce(sum(nfiles - nfilesused), 0), bool_or(state = 'mutable') FROM jedi_datasets
                 WHERE jeditaskid = %(task)s AND masterid IS NULL AND type IN {_INPUTS} AND status <> 'removed'""",
            values,
        )
        files, growing = cursor.fetchone()
    return Reopened(int(files), bool(growing))


def open_again(task_id: int, datasets: list[int]) -> None:
    """Open inputs that a task takes again, by their ids in order; they are looked up anew."""
    with connection.cursor() as cursor:
        _open(cursor, {**_values(task_id, True, None), "datasets": datasets})


def _values(task_id: int, incremental: bool, groups: Collection[int] | None) -> dict[str, Any]:
    numbers = None if groups is None else sorted(groups)
    return {"task": task_id, "more": attempts.added_to(task_id), "all": incremental, "groups": numbers}


def _open(cursor: CursorWrapper, values: dict[str, Any]) -> None:
    recovered = _recover(cursor, values) if values["all"] else {}
    opened, given_back = _open_files(cursor, values), _give_back(cursor, values)
    if values["all"]:
        cursor.execute(
            """UPDATE jedi_dataset_contents SET ramcount = 0 WHERE jeditaskid = %(task)s
                  AND datasetid = ANY(%(datasets)s) AND status = 'ready' AND ramcount <> 0""",
            values,
        )
    _queue(cursor, values)
    _count(cursor, values, opened, given_back, recovered)
    if not values["all"]:
        _ask_again(cursor, values)


def _ask_again(cursor: CursorWrapper, values: dict[str, Any]) -> None:
    """Files that could not be staged from tape are asked for once more, by the feeder."""
    cursor.execute(
        f"""WITH asked AS (
                UPDATE jedi_dataset_contents SET status = 'staging'
                 WHERE jeditaskid = %(task)s AND datasetid = ANY(%(datasets)s) AND type IN {_INPUTS}
                   AND {before(INPUT, F.STAGING, among=[F.MISSING])}
                   AND {not_dropped("jedi_dataset_contents")}
                RETURNING datasetid, coalesce(endevent - startevent + 1, nevents, 0) AS events),
            counts AS (SELECT datasetid, count(*) AS files, sum(events) AS events FROM asked GROUP BY 1)
            UPDATE jedi_datasets d
               SET nfiles = nfiles + n.files, nfilesmissing = greatest(0, nfilesmissing - n.files),
                   nevents = coalesce(nevents, 0) + n.events, state = 'mutable', statecehcktime = 'epoch'
              FROM counts n WHERE d.datasetid = n.datasetid""",
        values,
    )


def _to_open(cursor: CursorWrapper, values: dict[str, Any]) -> list[int]:
    """Ids of the datasets that are opened, in their order; on a retry without masters that are processed completely. The
    others serve all masters: they are opened when one of these is."""
    cursor.execute(
        f"""SELECT d.datasetid FROM jedi_datasets d
             WHERE d.jeditaskid = %(task)s AND d.type IN {_READ} AND d.status IS DISTINCT FROM 'removed'
               AND (%(all)s OR d.type = 'random_seed' OR d.state = 'mutable' OR CASE WHEN d.masterid IS NULL
                    THEN d.nfiles > d.nfilesfinished OR d.nfilesmissing > 0 AND {_MISSES_FILES.format("d")}
                    ELSE EXISTS (SELECT FROM jedi_datasets m WHERE m.jeditaskid = d.jeditaskid AND m.masterid IS NULL
                                    AND m.type IN {_INPUTS} AND m.status IS DISTINCT FROM 'removed'
                                    AND (m.state = 'mutable' OR m.nfiles > m.nfilesfinished
                                         OR m.nfilesmissing > 0 AND {_MISSES_FILES.format("m")})) END)
             ORDER BY d.datasetid""",
        values,
    )
    return [row[0] for row in cursor.fetchall()]


def _recover(cursor: CursorWrapper, values: dict[str, Any]) -> dict[int, int]:
    """Files that were lost or missing are ready again. Returns their number by dataset."""
    cursor.execute(
        f"""WITH back AS (
                UPDATE jedi_dataset_contents SET status = 'ready', attemptnr = coalesce(attemptnr, 0) + 1,
                       maxattempt = CASE WHEN attemptnr + 1 >= maxattempt THEN attemptnr + 1 + %(more)s ELSE maxattempt END,
                       maxfailure = CASE WHEN failedattempt >= maxfailure THEN failedattempt + %(more)s ELSE maxfailure END
                 WHERE jeditaskid = %(task)s AND datasetid = ANY(%(datasets)s) AND type IN {_INPUTS}
                   AND {before(INPUT, F.READY, among=[F.LOST, F.MISSING])}
                   AND {not_dropped("jedi_dataset_contents")} RETURNING datasetid)
            SELECT datasetid, count(*) FROM back GROUP BY 1""",
        values,
    )
    return dict(cursor.fetchall())


def _open_files(cursor: CursorWrapper, values: dict[str, Any]) -> dict[int, int]:
    """Files without attempts get more. Returns their number by dataset."""
    cursor.execute(
        f"""WITH opened AS (
                UPDATE jedi_dataset_contents c SET {_MORE}
                 WHERE c.jeditaskid = %(task)s AND c.datasetid = ANY(%(datasets)s) AND c.type IN {_INPUTS}
                   AND c.status = 'ready' AND c.keeptrack = 1 AND {attempts.NONE_LEFT} AND {attempts.OF_GROUPS}
                RETURNING c.datasetid)
            SELECT datasetid, count(*) FROM opened GROUP BY 1""",
        values,
    )
    return dict(cursor.fetchall())


def _give_back(cursor: CursorWrapper, values: dict[str, Any]) -> dict[int, int]:
    """Files that are in use, though no job that is open has them, are ready again. Returns their number by dataset."""
    cursor.execute(
        f"""WITH back AS (
                UPDATE jedi_dataset_contents c SET status = 'ready', attemptnr = coalesce(c.attemptnr, 0) + 1,
                       maxattempt = c.maxattempt + %(more)s
                 WHERE c.jeditaskid = %(task)s AND c.datasetid = ANY(%(datasets)s) AND c.type IN {_READ}
                   AND {before(INPUT, F.READY, among=[F.PICKED, F.RUNNING], row="c.")} AND c.keeptrack = 1
                   AND {attempts.OF_GROUPS}
                   AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.pandaid = c.pandaid
                                      AND j.jobstatus NOT IN ('finished', 'failed', 'cancelled', 'closed'))
                RETURNING c.datasetid)
            SELECT datasetid, count(*) FROM back GROUP BY 1""",
        values,
    )
    return dict(cursor.fetchall())


def _queue(cursor: CursorWrapper, values: dict[str, Any]) -> None:
    """Ready files that were handed out before wait to be handed out again; those behind the cursor come by themselves."""
    cursor.execute(
        f"""INSERT INTO file_retries (fileid, jeditaskid, datasetid)
            SELECT c.fileid, c.jeditaskid, c.datasetid FROM jedi_datasets d
              JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
             WHERE d.datasetid = ANY(%(datasets)s) AND c.jeditaskid = %(task)s AND c.status = 'ready' AND c.keeptrack = 1
               AND (c.fileid <= d.pick_cursor OR c.type = 'random_seed') AND NOT coalesce({attempts.NONE_LEFT}, false)
               AND {not_dropped("c")}
            ON CONFLICT DO NOTHING""",
        values,
    )


_OPENED = "CASE WHEN %(all)s AND d.type IN ('input', 'pseudo_input') THEN 'toupdate' ELSE 'ready' END"
_OPENED_STATUS = status_as(_OPENED, [DatasetStatus.TOUPDATE, DatasetStatus.READY], DATASET_MOVES["input"], "d.")


def _count(
    cursor: CursorWrapper,
    values: dict[str, Any],
    opened: dict[int, int],
    given_back: dict[int, int],
    recovered: dict[int, int],
) -> None:
    ids: list[int] = values["datasets"]
    cursor.execute("SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [ids])
    cursor.execute(
        f"""UPDATE jedi_datasets d
              SET nfilesfailed = greatest(0, d.nfilesfailed - n.opened),
                  nfilesused = greatest(0, d.nfilesused - n.opened - n.back),
                  nfiles = d.nfiles + n.recovered, nfilestobeused = d.nfilestobeused + n.recovered,
                  nfilesmissing = greatest(0, d.nfilesmissing - n.recovered),
                  status = {_OPENED_STATUS},
                  modificationtime = clock_timestamp()
             FROM unnest(%(ids)s::bigint[], %(opened)s::bigint[], %(back)s::bigint[], %(recovered)s::bigint[])
                  n (id, opened, back, recovered)
            WHERE d.datasetid = n.id""",
        {
            "all": values["all"],
            "ids": ids,
            "opened": [opened.get(i, 0) for i in ids],
            "back": [given_back.get(i, 0) for i in ids],
            "recovered": [recovered.get(i, 0) for i in ids],
        },
    )
    # A dataset that was left out since all of its files are done may have been called failed with its task.
    cursor.execute(
        f"""UPDATE jedi_datasets SET status = 'done' WHERE jeditaskid = %(task)s AND type IN {_INPUTS}
               AND status = 'failed' AND nfiles > 0 AND nfilesfinished >= nfiles AND NOT datasetid = ANY(%(datasets)s)""",
        values,
    )


def give_attempts(task_id: int, more: int | None = None, groups: Collection[int] | None = None) -> int:
    """Files of a task at work that have no attempt left get `more` and are tried again; with `groups` files of these only.
    Returns how many of masters.

    Without a number, they get as many as a retry gives.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH opened AS (
                UPDATE jedi_dataset_contents c SET {_MORE}
                 WHERE c.jeditaskid = %(task)s AND c.type IN {_INPUTS} AND c.status = 'ready' AND c.keeptrack = 1
                   AND {attempts.NONE_LEFT} AND {attempts.OF_GROUPS} RETURNING c.fileid, c.datasetid),
            queued AS (
                INSERT INTO file_retries (fileid, jeditaskid, datasetid)
                SELECT fileid, %(task)s, datasetid FROM opened ON CONFLICT DO NOTHING)
            SELECT datasetid, count(*), max(fileid) FROM opened GROUP BY 1 ORDER BY 1""",
            _values(task_id, False, groups) | ({"more": more} if more else {}),
        )
        rows = cursor.fetchall()
        if not rows:
            return 0
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(
            "SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [columns[0]]
        )
        # The cursor of a dataset whose files are used in an order of their own stands still.
        cursor.execute(
            """WITH counted AS (
                   UPDATE jedi_datasets d SET nfilesfailed = greatest(0, d.nfilesfailed - n.files),
                          nfilesused = greatest(0, d.nfilesused - n.files),
                          pick_cursor = CASE WHEN d.pick_cursor = 0 AND d.nfilesused > 0 THEN 0
                                             ELSE greatest(d.pick_cursor, n.last) END
                     FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) n (id, files, last)
                    WHERE d.datasetid = n.id RETURNING d.masterid, n.files)
               SELECT coalesce(sum(files) FILTER (WHERE masterid IS NULL), 0) FROM counted""",
            columns,
        )
        return int(cursor.fetchone()[0])


def give_up(task_id: int) -> int:
    """Files that wait for an attempt, or to be released, get none: the limit comes down to what was tried, and no attempt
    is made up. They count as released then: a task that scouted holds nothing back any more, and makes a lost output
    again without having its scouts judged first. The cursor stands behind all files then, whatever their order was.

    Returns how many files of master inputs that are.
    """
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM file_retries WHERE jeditaskid = %s", [task_id])
        cursor.execute(
            f"""
            WITH given_up AS (
                UPDATE jedi_dataset_contents SET status = 'ready', maxattempt = attemptnr
                 WHERE jeditaskid = %(task)s AND type IN {_INPUTS} AND (status = 'ready' OR {_WAITS}) AND keeptrack = 1
                   AND maxattempt IS NOT NULL AND attemptnr < maxattempt
                   AND (maxfailure IS NULL OR failedattempt < maxfailure)
                RETURNING datasetid),
            counts AS (
                SELECT g.datasetid, g.files,
                       (SELECT max(c.fileid) FROM jedi_dataset_contents c
                         WHERE c.jeditaskid = %(task)s AND c.datasetid = g.datasetid) AS last
                  FROM (SELECT datasetid, count(*) AS files FROM given_up GROUP BY 1) g),
            counted AS (
                UPDATE jedi_datasets d SET nfilesfailed = nfilesfailed + c.files, nfilesused = nfilesused + c.files,
                       nfilestobeused = greatest(nfilestobeused, nfilesused + c.files),
                       pick_cursor = greatest(d.pick_cursor, c.last),
                       state = CASE WHEN state = 'mutable' THEN 'closed' ELSE state END
                  FROM counts c WHERE d.datasetid = c.datasetid RETURNING d.masterid, c.files)
            SELECT coalesce(sum(files) FILTER (WHERE masterid IS NULL), 0) FROM counted
            """,
            {"task": task_id},
        )
        return int(cursor.fetchone()[0])


def release_staging(task_id: int) -> int:
    """Files that are being staged count as there: they wait to be used. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jedi_dataset_contents SET status = 'pending'
                 WHERE jeditaskid = %s AND type IN {_INPUTS} AND {_STAGING}""",
            [task_id],
        )
        count: int = cursor.rowcount
        if count:
            # The feeder looks at once.
            cursor.execute(
                f"UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE jeditaskid = %s AND type IN {_INPUTS}",
                [task_id],
            )
        return count


def staging_in(tasks: Collection[int]) -> set[int]:
    """Those of these tasks with a file that is being staged. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT DISTINCT jeditaskid FROM jedi_dataset_contents
                 WHERE jeditaskid = ANY(%s) AND type IN {_INPUTS} AND {_STAGING}""",
            [list(tasks)],
        )
        return {task for (task,) in cursor.fetchall()}


def note_staged(task_id: int, datasets: list[int], names: list[str] | None) -> int:
    """Files of datasets that the caller has locked are staged: those of these names, or all. Returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jedi_dataset_contents SET status = 'pending'
                WHERE jeditaskid = %(task)s AND datasetid = ANY(%(datasets)s) AND {_STAGING}
                  AND (%(files)s::text[] IS NULL OR lfn = ANY(%(files)s::text[]))""",
            {"task": task_id, "datasets": datasets, "files": names},
        )
        count: int = cursor.rowcount
        return count


def stop_waiting(task_id: int) -> None:
    """Files of a task that ends are waited for no longer: they count as there, and as not yet used.

    Scouts that were not judged keep their share: what was pending waits for them when the task runs again.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH released AS (
                UPDATE jedi_dataset_contents SET status = 'ready'
                 WHERE jeditaskid = %(task)s AND {_WAITS}
                   AND datasetid = ANY(ARRAY(SELECT datasetid FROM jedi_datasets
                                              WHERE jeditaskid = %(task)s AND nfiles > nfilestobeused))
                RETURNING datasetid),
            counts AS (SELECT datasetid, count(*) AS files FROM released GROUP BY 1)
            UPDATE jedi_datasets d SET nfilestobeused = nfilestobeused + c.files
              FROM counts c, jedi_tasks t
             WHERE d.datasetid = c.datasetid AND t.jeditaskid = %(task)s
               AND NOT (d.masterid IS NULL AND coalesce(t.splitrule, '') ~ '(^|,)US=2(,|$)')""",
            {"task": task_id},
        )


def lower_memory(task_id: int, memory_mb: int) -> None:
    """A smaller memory holds at once, for files that had been given more."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""UPDATE jedi_dataset_contents SET ramcount = %(ram)s
                 WHERE jeditaskid = %(task)s AND type IN {_INPUTS} AND status = 'ready' AND ramcount > %(ram)s""",
            {"task": task_id, "ram": memory_mb},
        )
