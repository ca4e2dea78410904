"""Invariants of ranges and jobsets, as (name, sentence, query): see `tasks_app.audit.flow_invariants`."""

from __future__ import annotations

from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import HANDED_OUT, LIVE
from tasks_app.domain.states import JOB_FINAL

_ENDS = ", ".join(f"'{status}'" for status in sorted(JOB_FINAL))

# ruff: noqa: S608 - every piece is a constant of ours
ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "handed_out_range_has_job",
        "A range that is handed out is at a job that has not ended, and does not wait for its merge.",
        f"""
        SELECT e.jeditaskid, e.row_id, e.fileid, e.pandaid, j.jobstatus FROM jedi_events e
          LEFT JOIN jobs j ON j.pandaid = e.pandaid
         WHERE {is_in(HANDED_OUT, "e.")} AND coalesce(j.jobstatus IN ({_ENDS}, 'merging'), true)""",
    ),
    (
        "range_lives_once",
        "No event of a file is in two ranges that are processed, or may still be.",
        f"""
        SELECT * FROM (
            SELECT jeditaskid, fileid, row_id, def_min_eventid,
                   max(def_max_eventid) OVER (PARTITION BY jeditaskid, fileid ORDER BY def_min_eventid, row_id
                                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM jedi_events WHERE {is_in(LIVE)}) r
         WHERE def_min_eventid <= before""",
    ),
    (
        "jobset_has_owner",
        "What consumers at work have ranges of is a file in use, and an open job of their jobset has it.",
        f"""
        SELECT j.jeditaskid, j.jobsetid, c.fileid, c.status, c.pandaid FROM jobs j
          JOIN jedi_events e ON e.jeditaskid = j.jeditaskid AND e.pandaid = j.pandaid AND {is_in(HANDED_OUT, "e.")}
          JOIN jedi_dataset_contents c ON c.jeditaskid = e.jeditaskid AND c.fileid = e.fileid
         WHERE j.eventservice IN (1, 5) AND j.jobstatus NOT IN ({_ENDS}) AND (c.status <> 'running' OR NOT EXISTS (
               SELECT FROM jobs o WHERE o.pandaid = c.pandaid AND o.jobsetid = j.jobsetid AND o.eventservice > 0
                  AND o.jobstatus NOT IN ({_ENDS}, 'merging')))""",
    ),
    (
        "merging_consumer_is_awaited",
        "A consumer that waits for its merge has done ranges, or a line ends it, unless its jobset is still at work.",
        f"""
        SELECT j.jeditaskid, j.pandaid, j.jobsetid FROM jobs j
         WHERE j.jobstatus = 'merging' AND j.eventservice > 0
           AND NOT EXISTS (SELECT FROM jedi_events e WHERE e.jeditaskid = j.jeditaskid AND e.pandaid = j.pandaid AND e.status = 6)
           AND NOT EXISTS (SELECT FROM job_output_report r WHERE r.pandaid = j.pandaid)
           AND NOT EXISTS (SELECT FROM jobs o WHERE o.jobsetid = j.jobsetid AND o.eventservice > 0
                              AND o.jobstatus NOT IN ({_ENDS}, 'merging'))""",
    ),
)
