"""The door for the states of datasets. No other statement changes the state of a stored dataset than those of this module, and
`file_moves`, which opens datasets with their files. New ones are stored by `submission`, `inputs` and `generation`.

A dataset keeps its state where `DATASET_MOVES` does not allow the move. Counts and times that are written with it hold in
any state, and are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import connection
from django.db.models import Case, F, Q, QuerySet, Value, When

from tasks_app.domain.states import DATASET_MOVES, DatasetStatus
from tasks_app.lifecycle.conditions import as_said, is_one_of, may_become
from tasks_app.models import Dataset
from tasks_app.models.dataset import INPUT_TYPES, MADE_TYPES

D = DatasetStatus
Table = Mapping[DatasetStatus, frozenset[DatasetStatus]]
INPUT, OUTPUT = DATASET_MOVES["input"], DATASET_MOVES["output"]
_ENDS = (D.DONE, D.FINISHED, D.FAILED)


def move(datasets: QuerySet[Dataset], new: DatasetStatus, **columns: Any) -> int:
    """Datasets become `new` where their table allows it, and get the other columns. Returns how many rows that are."""
    made = Q(type__in=MADE_TYPES)
    may = ~made & _may_become(INPUT, new) | made & _may_become(OUTPUT, new)
    return datasets.update(status=Case(When(may, then=Value(new.value)), default=F("status")), **columns)


def _may_become(table: Table, new: DatasetStatus) -> Q:
    olds = may_become(table, [new])
    # To the feeder, a row without a state is as new as one that is registered.
    return Q(status__in=olds) | Q(status=None) if D.REGISTERED in olds else Q(status__in=olds)


def before(table: Table, new: DatasetStatus, row: str = "") -> str:
    """SQL: a dataset may become `new`. `row` is its alias with a dot."""
    olds = may_become(table, [new])
    return is_one_of(f"{row}status", olds)


def status_as(said: str, news: Iterable[DatasetStatus], table: Table, row: str = "") -> str:
    """SQL: the state that `said`, an expression, names, which is one of `news`, where a dataset may become that, else its own."""
    may = as_said(said, {new: before(table, new, row) for new in news})
    return f"CASE WHEN {may} THEN {said} ELSE {row}status END"


# ruff: noqa: S608 - every piece is a constant of ours
# Hot path, run by `generation.store`: what a bunch of jobs adds. Those that take its outputs are at work.
COUNT_STORED: Final = f"""
UPDATE jedi_datasets d SET nfiles = nfiles + n.new, nfilestobeused = nfilestobeused + n.new,
       nfilesused = nfilesused + n.used, pick_cursor = greatest(pick_cursor, n.last),
       status = CASE WHEN d.datasetid = ANY(%s) AND {before(OUTPUT, D.RUNNING, "d.")} THEN 'running'
                     ELSE d.status END,
       modificationtime = clock_timestamp()
  FROM (SELECT id, sum(new) AS new, sum(used) AS used, max(last) AS last
          FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]) u (id, new, used, last) GROUP BY id) n
 WHERE d.datasetid = n.id"""

# Run by `outcomes.lost_outputs`: inputs that are processed again are in use again.
COUNT_LOST: Final = f"""
UPDATE jedi_datasets d
   SET status = CASE WHEN n.again > 0 AND {before(INPUT, D.READY, "d.")} THEN 'ready'
                     ELSE d.status END,
       nfilesfinished = nfilesfinished - n.again - n.lost,
       nfilesused = nfilesused - n.again, nfilesmissing = nfilesmissing + n.lost,
       neventsused = greatest(0, coalesce(neventsused, 0) - n.events - n.lost_events),
       modificationtime = clock_timestamp()
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
       n (id, again, events, lost, lost_events)
 WHERE d.datasetid = n.id"""

_BY_ITS_FILES = """CASE WHEN nfilesfinished >= nfiles AND nfiles > 0 AND NOT datasetid = ANY(%(lacking)s::bigint[]) THEN 'done'
            WHEN nfilesfinished > 0 THEN 'finished' ELSE 'failed' END"""
_END_INPUTS = f"""
UPDATE jedi_datasets SET state = CASE WHEN state = 'mutable' THEN 'closed' ELSE state END,
       status = {status_as(_BY_ITS_FILES, _ENDS, INPUT)}
 WHERE jeditaskid = %(task)s AND type = ANY(%(types)s) AND masterid IS NULL AND status NOT IN ('removed', 'broken')"""


def end_inputs(task_id: int, lacking: Iterable[int]) -> None:
    """No more files come into the masters of a task that ends: their files say how they end. `lacking`: those that miss some."""
    with connection.cursor() as cursor:
        cursor.execute(_END_INPUTS, {"task": task_id, "types": list(INPUT_TYPES), "lacking": sorted(lacking)})
