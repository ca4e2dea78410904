"""The invariants of data that moves: rules, requests, replicas, and the jobs that wait for them."""

from __future__ import annotations

ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "transfer_rule_counters",
        "A transfer rule counts its requests: all of them, their bytes, and those that are done or have failed.",
        """
        SELECT r.id, r.kind, r.files, r.bytes, r.files_done, r.bytes_done, r.files_failed, n.* FROM transfer_rules r
         CROSS JOIN LATERAL (
               SELECT count(*) AS requests, coalesce(sum(q.bytes), 0) AS size,
                      count(*) FILTER (WHERE q.status = 'done') AS done,
                      coalesce(sum(q.bytes) FILTER (WHERE q.status = 'done'), 0) AS done_size,
                      count(*) FILTER (WHERE q.status = 'failed') AS failed
                 FROM transfer_requests q WHERE q.rule_id = r.id) n
         WHERE (r.files, r.bytes, r.files_done, r.bytes_done, r.files_failed)
               IS DISTINCT FROM (n.requests, n.size, n.done, n.done_size, n.failed)""",
    ),
    (
        "transfer_rule_ends_with_its_requests",
        "A transfer rule is open while one of its requests is, and says by them how it ended.",
        """
        SELECT r.id, r.kind, r.status, r.ended, n.* FROM transfer_rules r CROSS JOIN LATERAL (
               SELECT count(*) FILTER (WHERE q.status IN ('queued', 'active')) AS open,
                      count(*) FILTER (WHERE q.status = 'failed') AS failed
                 FROM transfer_requests q WHERE q.rule_id = r.id) n
         WHERE (r.status IN ('queued', 'active')) <> (n.open > 0) OR (r.status IN ('queued', 'active')) <> (r.ended IS NULL)
            OR (r.status = 'done' AND n.failed > 0) OR (r.status = 'failed' AND n.failed = 0)""",
    ),
    (
        "assigned_job_waits_for_its_input",
        "A job is assigned only while its input is being copied to its queue.",
        """
        SELECT j.pandaid, j.jeditaskid, j.computingsite FROM jobs j WHERE j.jobstatus = 'assigned'
           AND NOT EXISTS (SELECT 1 FROM transfer_rules r WHERE r.pandaid = j.pandaid
                              AND r.kind = 'copy' AND NOT r.is_settled)""",
    ),
    (
        "transferring_job_waits_for_its_output",
        "A job is transferring only while its outputs are being gathered, or that they have arrived waits for the adder.",
        """
        SELECT j.pandaid, j.jeditaskid, j.nucleus FROM jobs j WHERE j.jobstatus = 'transferring'
           AND NOT EXISTS (SELECT 1 FROM job_output_report r WHERE r.pandaid = j.pandaid)
           AND NOT EXISTS (SELECT 1 FROM transfer_rules r WHERE r.pandaid = j.pandaid
                              AND r.kind = 'gather' AND NOT r.is_settled)""",
    ),
    (
        "further_replica_is_elsewhere",
        "At the endpoint of a file's first place no further replica is kept, unless that place is bad.",
        """
        SELECT r.scope, r.lfn, r.endpoint, r.status FROM file_replicas r WHERE r.status = 'available' AND EXISTS (
               SELECT 1 FROM catalogue_files f WHERE f.lfn = r.lfn AND f.scope = r.scope AND f.endpoint = r.endpoint)""",
    ),
    (
        "further_replica_has_a_file",
        "A further replica is one of a file in the catalogue, or of an output that is being gathered.",
        """
        SELECT r.scope, r.lfn, r.endpoint, r.status FROM file_replicas r
         WHERE NOT EXISTS (SELECT 1 FROM catalogue_files f WHERE f.lfn = r.lfn AND f.scope = r.scope)
           AND NOT EXISTS (SELECT 1 FROM transfer_requests q JOIN transfer_rules g ON g.id = q.rule_id AND g.kind = 'gather'
                            WHERE q.lfn = r.lfn AND q.scope = r.scope)""",
    ),
)
