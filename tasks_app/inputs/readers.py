"""Tasks that read a dataset while it grows: when something has changed in it, their next look at it is due at once.

The feeder sets the time of its look before it looks. Whoever changes a dataset makes that time old again: in the
transaction of the change it has the rows until the commit, so that a feeder comes either before, and looks again, or
after, and sees the change. Readers whose rows another transaction has just made are seen after the commit only.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from django.db import connection, transaction

from brokerage_app.grid.replicas import STALE_AFTER
from jedisite.agents.passes import kick
from tasks_app.models import Dataset
from tasks_app.models.dataset import MADE_TYPES

# Whoever reads a container as a whole has no row for its datasets, and may have left out its slash. An input that nobody has
# concluded upon yet may be looked at in this moment.
_OF_NAMES = """
SELECT datasetid FROM jedi_datasets
 WHERE (datasetname = ANY(ARRAY(SELECT name FROM changed)) OR containername = ANY(ARRAY(SELECT name FROM changed)))
   AND type = 'input'
   AND (state = 'mutable' OR status IS NULL OR status IN ('registered', 'defined', 'toupdate', 'pending'))
   AND (%(held)s OR statecehcktime > 'epoch')
"""
_OF_CHILDREN = """
SELECT d.datasetid FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
 WHERE t.parent_tid = ANY(%(parents)s) AND t.jeditaskid <> t.parent_tid AND d.type = 'input' AND d.state IS DISTINCT FROM 'closed'
"""
_NAMES = """
WITH changed AS MATERIALIZED (
    SELECT unnest(%(names)s::text[]) AS name
    UNION
    SELECT n.name FROM jedi_datasets CROSS JOIN LATERAL (VALUES (containername), (rtrim(containername, '/'))) n (name)
     WHERE datasetname = ANY(%(names)s::text[]) AND type NOT IN ('input', 'pseudo_input') AND containername IS NOT NULL)
"""
_LOOK = f"""
{_NAMES}
UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE datasetid IN (
    SELECT datasetid FROM jedi_datasets WHERE datasetid IN ({{which}}) ORDER BY datasetid FOR UPDATE)
"""  # noqa: S608 - constants of ours
_ASK = f"""
{_NAMES}
UPDATE dataset_replica_lookups SET ts = clock_timestamp() - %(stale)s - interval '1 second' WHERE datasetname IN (
    SELECT l.datasetname FROM dataset_replica_lookups l
     WHERE l.datasetname = ANY(ARRAY(SELECT name FROM changed)) AND l.ts > clock_timestamp() - %(stale)s
       AND EXISTS (SELECT 1 FROM jedi_datasets d JOIN jedi_tasks t USING (jeditaskid)
                    WHERE d.datasetname = l.datasetname AND d.type = 'input' AND t.status = 'assigning')
     ORDER BY l.datasetname FOR UPDATE)
"""  # noqa: S608 - constants of ours


def wake_readers_of_tasks(task_ids: Collection[int]) -> None:
    """In the transaction in which tasks end: whoever reads what they make looks again, and so do their children."""
    made = set(Dataset.objects.filter(task_id__in=task_ids, type__in=MADE_TYPES).values_list("name", flat=True))
    _wake(sorted(made), held=True, parents=task_ids)
    if made:
        transaction.on_commit(partial(look_again, made))
        transaction.on_commit(partial(ask_again, made))


def wake_readers(names: Collection[str]) -> None:
    """In the transaction that closes datasets or containers, or changes them otherwise: whoever reads them looks again."""
    _wake(sorted(names), held=True)
    transaction.on_commit(partial(look_again, names))
    transaction.on_commit(partial(ask_again, names))


def look_again(names: Collection[str]) -> int:
    """After the commit of a change: the same. Returns how many inputs are to be looked at."""
    return _wake(sorted(names), held=False)


def _wake(names: list[str], *, held: bool, parents: Collection[int] = ()) -> int:
    """All rows are locked by one statement, in the order of their ids: two would lock out others who have some of them."""
    which = f"{_OF_NAMES} UNION {_OF_CHILDREN}" if parents else _OF_NAMES
    with connection.cursor() as cursor:
        cursor.execute(_LOOK.replace("{which}", which), {"names": names, "held": held, "parents": list(parents)})
        woken = cursor.rowcount
    if woken:
        kick("feeder")
    return woken


def ask_again(names: Collection[str]) -> int:
    """After the commit of a change: data management is asked soon where these datasets are, as far as tasks that wait for a
    nucleus read them. Returns of how many inputs.
    """
    values: dict[str, Any] = {"names": sorted(names), "stale": STALE_AFTER}
    with connection.cursor() as cursor:
        cursor.execute(_ASK, values)
        asked = cursor.rowcount
    if asked:
        kick("replicas")
    return asked
