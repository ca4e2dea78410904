"""Which tasks have nothing left to do: conditions on the row `t` of a task."""

from __future__ import annotations

from tasks_app.inputs.released_files import SHARE_IS_OUT

# A task is complete when each master input is: all of its files finished or failed for good, and no more will come.
_ALL_PROCESSED = """
NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
             AND d.type IN ('input', 'pseudo_input', 'pp_input') AND d.status NOT IN ('removed', 'failed', 'broken')
             AND (d.nfilestobeused > d.nfilesfinished + d.nfilesfailed OR d.state = 'mutable'
                  OR d.status IN ('defined', 'toupdate', 'pending')))
"""
# All that has come so far is done, and more may come: the feeder has it again.
_MAY_GROW = """
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
           AND d.type = 'input' AND d.state = 'mutable' AND d.status = 'ready')
AND NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
             AND d.type IN ('input', 'pseudo_input') AND d.status NOT IN ('removed', 'failed', 'broken')
             AND (d.nfilestobeused > d.nfilesfinished + d.nfilesfailed OR d.status IN ('defined', 'toupdate', 'pending')))
"""


# While scouts are out, only a part of the input is released; when that is done, the scouts are judged instead.
_NOT_SCOUTING = f"NOT {SHARE_IS_OUT} AND NOT (t.status = 'throttled' AND t.oldstatus = 'scouting')"

COMPLETE = f"{_ALL_PROCESSED} AND {_NOT_SCOUTING}"
AWAITS_MORE = f"{_MAY_GROW} AND {_NOT_SCOUTING}"
SCOUTS_ENDED = f"{_ALL_PROCESSED} AND {SHARE_IS_OUT}"
