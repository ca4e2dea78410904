"""Tasks that read a dataset while it grows: when something has changed in it, their next look at it is due at once.

The feeder sets the time of its look before it looks. Whoever changes a dataset makes that time old again: in the
transaction of the change it has the rows until the commit, so that a feeder comes either before, and looks again, or
after, and sees the change. Readers whose rows another transaction has just made are seen after the commit only.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from django.db import connection, transaction

from jedisite.agents import kick
from tasks_app.models import Dataset
from tasks_app.models.dataset import MADE_TYPES

# Whoever reads a container as a whole has no row for its datasets. An input that nobody has concluded upon yet may be
# looked at in this moment.
_LOOK = """
WITH changed AS MATERIALIZED (
    SELECT unnest(%(names)s::text[]) AS name
    UNION
    SELECT containername FROM jedi_datasets
     WHERE datasetname = ANY(%(names)s::text[]) AND type NOT IN ('input', 'pseudo_input') AND containername IS NOT NULL)
UPDATE jedi_datasets SET statecehcktime = 'epoch' WHERE datasetid IN (
    SELECT datasetid FROM jedi_datasets
     WHERE (datasetname = ANY(ARRAY(SELECT name FROM changed)) OR containername = ANY(ARRAY(SELECT name FROM changed)))
       AND type = 'input'
       AND (state = 'mutable' OR status IS NULL OR status IN ('registered', 'defined', 'toupdate', 'pending'))
       AND (%(held)s OR statecehcktime > 'epoch')
     ORDER BY datasetid FOR UPDATE)
"""


def wake_readers_of_task(task_id: int) -> None:
    """In the transaction in which a task ends: whoever reads what it makes looks again."""
    made = set(Dataset.objects.filter(task_id=task_id, type__in=MADE_TYPES).values_list("name", flat=True))
    if made:
        wake_readers(made)


def wake_readers(names: Collection[str]) -> None:
    """In the transaction that closes datasets or containers, or changes them otherwise: whoever reads them looks again."""
    _wake(sorted(names), held=True)
    transaction.on_commit(partial(look_again, names))


def look_again(names: Collection[str]) -> int:
    """After the commit of a change: the same. Returns how many inputs are to be looked at."""
    return _wake(sorted(names), held=False)


def _wake(names: list[str], *, held: bool) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, {"names": names, "held": held})
        woken = cursor.rowcount
    if woken:
        kick("feeder")
    return woken
