"""Where the inputs of tasks are: data management is asked when they are fed and when its answer is old; brokers read that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from brokerage_app.grid import replicas
from brokerage_app.grid.replicas import STALE_AFTER
from brokerage_app.vocabulary.needs import InputData
from jedisite.database.sql import hot_cursor
from tasks_app.ddm import data_management
from tasks_app.domain.states import TASK_FINAL, DatasetStatus
from tasks_app.lifecycle import nucleus_waits
from tasks_app.models import Dataset, Task
from tasks_app.params.dataset_attributes import IN_CVMFS, MANYTIME, Attributes, is_tracked

KEPT_FOR = timedelta(days=7)
"""Answers that nobody renews for so long are forgotten: no task reads the dataset any more."""
NOT_IN_DATA_MANAGEMENT = frozenset({"seq_number", "pseudo_dataset"})
DISTRIBUTED = "distributed"
_FINAL = ", ".join(f"'{status}'" for status in sorted(TASK_FINAL))
_STALE = f"""
SELECT DISTINCT d.datasetname FROM jedi_tasks t JOIN jedi_datasets d USING (jeditaskid)
  LEFT JOIN dataset_replica_lookups l ON l.datasetname = d.datasetname
 WHERE t.status NOT IN ({_FINAL}) AND d.type = 'input' AND d.status IS DISTINCT FROM 'removed'
   AND coalesce(l.ts, '-infinity') < %s
 ORDER BY 1 LIMIT %s
"""  # noqa: S608 - states of ours


def ask(names: Iterable[str], now: datetime) -> int:
    """Ask data management where these datasets are, and keep the answer. Tasks that wait for a nucleus look again where there is
    more of an input. Not inside a transaction.
    """
    wanted = sorted(set(names) - NOT_IN_DATA_MANAGEMENT)
    if not wanted:
        return 0
    answer = data_management().replicas(wanted)
    found = [
        replicas.Found(
            name, places.files, places.size, [(one.endpoint, one.files, one.size, one.complete) for one in places.held]
        )
        for name, places in answer.items()
    ]
    with transaction.atomic():
        nucleus_waits.wake_readers(replicas.keep(found, now))
    return len(wanted)


def stale(now: datetime, limit: int) -> list[str]:
    """Inputs of open tasks whose places nobody has asked for, or not for an hour."""
    with hot_cursor() as cursor:
        cursor.execute(_STALE, [now - STALE_AFTER, limit])
        return [name for (name,) in cursor if name not in NOT_IN_DATA_MANAGEMENT]


def inputs_of(task: Task) -> tuple[InputData, ...]:
    """The input datasets of a task and where they are, as brokers want them; primary ones first. Two statements.

    Numbers of events and other pseudo input are nowhere, so they are left out, and so is what jobs find in CVMFS. A dataset
    that nobody has asked for yet has no replicas: the feeder asks before a task is ready.
    """
    found = Dataset.objects.filter(task=task, type="input").exclude(status=DatasetStatus.REMOVED)
    datasets = [row for row in found.order_by("list_position", "id") if row.name not in NOT_IN_DATA_MANAGEMENT]
    known = replicas.whereabouts(row.name for row in datasets)
    data = []
    for row in sorted(datasets, key=lambda row: row.master_id is not None):
        where, given = known[row.name], Attributes.parse(row.attributes)
        if IN_CVMFS in given and not is_tracked(row.attributes):
            continue
        places = where.replicas or {}
        if MANYTIME in given:
            places = {name: replace(one, complete=True) for name, one in places.items()}
        data.append(
            InputData(
                name=row.name,
                files=where.files or row.files,
                size_mb=where.size_mb,
                is_primary=row.master_id is None,
                distributed=DISTRIBUTED in given,
                replicas=places,
            )
        )
    return tuple(data)


def forget_old(now: datetime) -> None:
    """Delete answers that nobody needs any more."""
    replicas.forget_before(now - KEPT_FOR)
