"""Input files that the books have, and that the task cannot process any more: those that are `missing` could not be brought from
tape, and those that are `lost` are no longer in their dataset, or in a group that lacks such a file. A task that misses some is
not done.

Not counted: lost files in whose place their maker has made others, files that `indexConsistent` leaves out since they have no
partner, and all where the task has as many files or events as it asked for (`nFiles`,
`nEvents`) without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, Protocol

from jedisite.database.sql import hot_cursor, numbers, texts
from jedisite.vocabulary.words import plural, some
from tasks_app.ddm import data_management
from tasks_app.domain.states import FileStatus
from tasks_app.inputs.replaced import made_again
from tasks_app.models import Dataset, File
from tasks_app.transfers.replicas import READABLE, places_of

CANCELLED: Final = "it was cancelled"
MOST_DATASETS: Final = 5
MOST_LOOKED_UP: Final = 10_000
"""Lost files of a task that are looked up to name some of them."""


class Missing(NamedTuple):
    """Files and their events. `lost`: how many of the files are lost; the others could not be brought from tape."""

    files: int = 0
    events: int = 0
    lost: int = 0


class Counted(Protocol):
    """What a dataset says of itself."""

    id: int
    files_missing: int


_MISSING: Final = """
WITH counted AS MATERIALIZED (
    SELECT d.jeditaskid, d.datasetid, 'ic' = ANY(string_to_array(coalesce(d.attributes, ''), ',')) AS consistent,
           coalesce(w.files > 0 AND w.files <= n.files OR w.events > 0 AND w.events <= n.events, false) AS enough
      FROM jedi_datasets d LEFT JOIN jedi_taskparams p ON p.jeditaskid = d.jeditaskid
     CROSS JOIN LATERAL (SELECT (p.taskparams ->> 'nFiles')::numeric AS files, (p.taskparams ->> 'nEvents')::numeric AS events) w
     CROSS JOIN LATERAL (
           SELECT sum(m.nfiles) AS files, sum(m.nevents) AS events FROM jedi_datasets m
            WHERE m.jeditaskid = d.jeditaskid AND m.masterid IS NULL AND m.type = 'input' AND m.status <> 'removed') n
     WHERE d.datasetid = ANY(%(datasets)s::bigint[]))
SELECT d.datasetid, count(*), sum(coalesce(c.endevent - c.startevent + 1, c.nevents, 0))::bigint,
       count(*) FILTER (WHERE c.status = 'lost')
  FROM counted d JOIN jedi_dataset_contents c USING (jeditaskid, datasetid)
 WHERE c.status IN ('missing', 'lost') AND NOT (d.enough AND c.startevent IS NULL)
   AND NOT (c.status = 'lost' AND (d.consistent OR EXISTS (
           SELECT FROM unnest(%(replaced_in)s::bigint[], %(replaced)s::text[]) r (datasetid, lfn)
            WHERE r.datasetid = c.datasetid AND r.lfn = c.lfn))) GROUP BY 1"""


def missing_of(datasets: Iterable[Counted]) -> dict[int, Missing]:
    """What is missing of each of these datasets. Two queries, and none where all is there."""
    ids = [dataset.id for dataset in datasets if dataset.files_missing]
    if not ids:
        return {}
    with hot_cursor() as cursor:
        others = made_again(cursor, ids)
        values = {
            "datasets": numbers(ids),
            "replaced_in": numbers(dataset for dataset, _ in others),
            "replaced": texts(lfn for _, lfn in others),
        }
        cursor.execute(_MISSING, values)
        return {dataset: Missing(*counts) for dataset, *counts in cursor.fetchall()}


def total(found: Collection[Missing]) -> Missing:
    return Missing(sum(one.files for one in found), sum(one.events for one in found), sum(one.lost for one in found))


def lost_of(datasets: Iterable[Dataset]) -> Counter[int]:
    """How many lost files the tasks of these datasets miss. Two queries, and none where all is there."""
    lost, rows = Counter[int](), {dataset.id: dataset for dataset in datasets}
    for dataset_id, found in missing_of(rows.values()).items():
        lost[rows[dataset_id].task_id] += found.lost
    return lost


def tasks_with_missing(tasks: Collection[int]) -> set[int]:
    """Those of these tasks with a file that could not be brought from tape."""
    files = File.objects.filter(task_id__in=list(tasks), status=FileStatus.MISSING, type="input")
    return set(files.values_list("task_id", flat=True).distinct())


def reasons(files: Collection[int]) -> dict[int, str]:
    """Why each of these missing files could not be brought: what was said of the last attempt. One query."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT DISTINCT ON (c.fileid) c.fileid, q.error
                 FROM jedi_dataset_contents c
                 JOIN transfer_rules r ON r.jeditaskid = c.jeditaskid AND r.kind = 'stage'
                 JOIN transfer_requests q ON q.rule_id = r.id AND q.scope = c.scope AND q.lfn = c.lfn AND q.status <> 'done'
                WHERE c.fileid = ANY(%s::bigint[]) AND c.status = 'missing' ORDER BY c.fileid, q.id DESC""",
            [numbers(files)],
        )
        return {file: f"could not be staged from tape: {error or CANCELLED}" for file, error in cursor.fetchall()}


def why_missing(task_id: int, found: Missing, *, whole_groups: bool) -> str:
    """Why a task misses these files, as a part of a sentence; "" where it misses none. `whole_groups`: a group is one job."""
    unstaged = found.files - found.lost
    return "; ".join(
        filter(
            None,
            (
                _why_unstaged(task_id, unstaged) if unstaged else "",
                _why_lost(task_id, found.lost, whole_groups=whole_groups) if found.lost else "",
            ),
        )
    )


def _why_lost(task_id: int, lost: int, *, whole_groups: bool) -> str:
    """`2 files are lost: lab.in no longer has lab.in.1, lab.in.2`; or that no storage has them, as far as that can be said."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT d.datasetname, c.scope, c.lfn
                 FROM jedi_dataset_contents c JOIN jedi_datasets d USING (jeditaskid, datasetid)
                WHERE c.jeditaskid = %s AND c.status = 'lost' AND c.type = 'input' AND (d.masterid IS NULL OR %s)
                ORDER BY c.fileid LIMIT %s""",
            [task_id, whole_groups, MOST_LOOKED_UP],
        )
        rows = cursor.fetchall()
        places = places_of(cursor, [(scope or "", lfn) for _, scope, lfn in rows])
    by_dataset: dict[str, list[str]] = {}
    for dataset, _, lfn in rows:
        by_dataset.setdefault(dataset, []).append(lfn)
    gone = {
        dataset: lacking
        for dataset, lfns in by_dataset.items()
        if (lacking := list(data_management().lacking([dataset], lfns, hints=False)))
    }
    said = [f"{dataset} no longer has {some(lacking)}" for dataset, lacking in gone.items()][:MOST_DATASETS]
    bad = [
        lfn
        for dataset, scope, lfn in rows
        if lfn not in gone.get(dataset, ())
        and (known := places[scope or "", lfn])
        and not any(one.status in READABLE for one in known)
    ]
    said += [f"no storage has {some(bad)}"] if bad else []
    back = "which was not there when it" if lost == 1 else "which were not there when they"
    was, is_back = ("was", "is") if lost == 1 else ("were", "are")
    which = ", ".join(said) or f"{some([row[2] for row in rows])}, {back} {was} looked for and {is_back} there again"
    if not whole_groups:
        return f"{plural(lost, 'file is', 'files are')} lost: {which}"
    return f"{_groups(task_id)} left out, with {plural(lost, 'file')}, since no job is made of a group that lacks a file: {which}"


def _groups(task_id: int) -> str:
    """`groups 1, 4 are`: those of which the task has lost files."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT DISTINCT c.boundaryid FROM jedi_dataset_contents c JOIN jedi_datasets d USING (jeditaskid, datasetid)
                WHERE c.jeditaskid = %s AND c.status = 'lost' AND c.type = 'input' AND d.masterid IS NULL ORDER BY 1""",
            [task_id],
        )
        named = [f"{boundary}" for (boundary,) in cursor.fetchall()]
    return f"group {named[0]} is" if len(named) == 1 else f"groups {some(named)} are"


def _why_unstaged(task_id: int, files: int) -> str:
    """`1 file could not be staged from tape: a.root: it is not in the storage at TAPE`: of the last that failed."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT c.lfn, q.error FROM jedi_dataset_contents c
                 JOIN transfer_rules r ON r.jeditaskid = c.jeditaskid AND r.kind = 'stage'
                 JOIN transfer_requests q ON q.rule_id = r.id AND q.scope = c.scope AND q.lfn = c.lfn AND q.status <> 'done'
                WHERE c.jeditaskid = %s AND c.status = 'missing' ORDER BY q.id DESC LIMIT 1""",
            [task_id],
        )
        row = cursor.fetchone()
    such = f"{', such as' if files > 1 else ':'} {row[0]}: {row[1] or CANCELLED}" if row else ""
    return f"{plural(files, 'file')} could not be staged from tape{such[:1000]}"
