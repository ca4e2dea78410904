"""Invariants of ranges and jobsets, as (name, sentence, query): see `tasks_app.audit.flow_invariants`."""

from __future__ import annotations

from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import HANDED_OUT, LIVE, PROCESSED, EventStatus
from tasks_app.domain.states import JOB_FINAL

_INPUTS = "'input', 'pseudo_input'"
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
        "partial_file_lacks_events",
        "A file is partial if some of its events were given up and the others merged, and no task with one is done.",
        f"""
        SELECT c.jeditaskid, c.datasetid, c.fileid, c.status, t.status AS task FROM jedi_dataset_contents c
          JOIN jedi_tasks t USING (jeditaskid)
         WHERE c.type IN ({_INPUTS}) AND c.status IN ('finished', 'partial') AND (t.eventservice > 0 OR c.status = 'partial')
           AND CASE WHEN c.status = 'partial' THEN t.status = 'done' OR NOT coalesce(
                    (SELECT sum(e.def_max_eventid - e.def_min_eventid + 1) FROM jedi_events e WHERE e.jeditaskid = c.jeditaskid
                        AND e.fileid = c.fileid AND {is_in({EventStatus.MERGED}, "e.")})
                    BETWEEN 1 AND coalesce(c.endevent - c.startevent + 1, c.nevents, 0) - 1, false)
                    ELSE EXISTS (SELECT FROM jedi_events e WHERE e.jeditaskid = c.jeditaskid
                                    AND e.fileid = c.fileid AND {is_in({EventStatus.FATAL}, "e.")}) END""",
    ),
    (
        "input_events",
        "Events of input datasets equal a recount of their files; used are those of processed files but for what was given up.",
        f"""
        SELECT d.jeditaskid, d.datasetid, d.nevents, d.neventsused, r.* FROM jedi_datasets d CROSS JOIN LATERAL (
               SELECT coalesce(sum(n.events) FILTER (WHERE c.status NOT IN ('lost', 'missing', 'removed')), 0) AS events,
                      coalesce(sum(n.events) FILTER (WHERE c.status IN ('finished', 'partial') AND c.keeptrack = 1), 0)
                      - coalesce(sum(n.events - (
                            SELECT coalesce(sum(e.def_max_eventid - e.def_min_eventid + 1), 0) FROM jedi_events e
                             WHERE e.jeditaskid = c.jeditaskid AND e.fileid = c.fileid AND {is_in({EventStatus.MERGED}, "e.")}))
                                 FILTER (WHERE c.status = 'partial'), 0) AS used
                 FROM jedi_dataset_contents c
                CROSS JOIN LATERAL (SELECT coalesce(c.endevent - c.startevent + 1, c.nevents, 0) AS events) n
                WHERE c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid) r
         WHERE d.type IN ({_INPUTS}) AND (coalesce(d.nevents, 0), coalesce(d.neventsused, 0)) <> (r.events, r.used)""",
    ),
    (
        "events_of_consumers",
        "A job that takes ranges counts no fewer events than those of the ranges that it has finished.",
        f"""
        SELECT j.jeditaskid, j.pandaid, j.nevents, r.events FROM jobs j CROSS JOIN LATERAL (
               SELECT coalesce(sum(e.def_max_eventid - e.def_min_eventid + 1), 0) AS events FROM jedi_events e
                WHERE e.jeditaskid = j.jeditaskid AND e.pandaid = j.pandaid AND {is_in(PROCESSED, "e.")}) r
         WHERE j.eventservice IN (1, 4, 5, 6) AND coalesce(j.nevents, 0) < r.events""",
    ),
    (
        "one_merge_of_jobset",
        "A jobset has one merge job at a time, which has the files, and no range of them is still to be processed.",
        f"""
        SELECT j.jeditaskid, j.jobsetid, min(j.pandaid) AS job, count(*) AS jobs FROM jobs j
         WHERE j.eventservice = 2 AND j.jobstatus NOT IN ({_ENDS})
         GROUP BY 1, 2 HAVING count(*) > 1
        UNION ALL
        SELECT j.jeditaskid, j.jobsetid, j.pandaid, 0 FROM jobs j
         WHERE j.eventservice = 2 AND j.jobstatus NOT IN ({_ENDS})
           AND EXISTS (SELECT FROM jedi_events e JOIN job_files f ON f.fileid = e.fileid AND f.pandaid = j.pandaid
                        WHERE e.jeditaskid = j.jeditaskid AND e.event_offset = j.jobsetid AND (
                              {is_in(HANDED_OUT, "e.")} OR ({is_in({EventStatus.READY}, "e.")} AND e.attemptnr > 0)))""",
    ),
    (
        "waiting_files_are_used",
        "Of an input no more files wait for jumbo jobs than it has.",
        f"""
        SELECT jeditaskid, datasetid, nfileswaiting, nfiles FROM jedi_datasets
         WHERE type IN ({_INPUTS}) AND nfileswaiting NOT BETWEEN 0 AND nfiles""",
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
