"""What transfers show of links goes into the network matrix, in the keys that brokers read: MB/s, files queued, done and failed.

A link is a pair of sites. Its throughput is what was copied, by the time in which something was being copied.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from jedisite.database.sql import hot_cursor

KEPT_FOR = timedelta(days=7)
"""Requests that have ended are kept for so long, as the longest mean goes."""

# What has been measured once is written each time: a link on which nothing waits any more has 0 files queued.
_WRITE = """
WITH sites AS (SELECT name, site_name FROM storage_endpoints WHERE path <> ''),
moved AS MATERIALIZED (
    SELECT s.site_name AS src, d.site_name AS dst, r.activity, q.status, q.bytes, q.started, q.ended
      FROM transfer_requests q JOIN transfer_rules r ON r.id = q.rule_id
      JOIN sites s ON s.name = q.source JOIN sites d ON d.name = q.destination
     WHERE (q.ended >= %(now)s - interval '7 days' OR q.status IN ('queued', 'active')) AND s.site_name <> d.site_name),
speeds AS (
    SELECT src, dst, w.key, (sum(bytes) / 1e6)::float8 AS mb,
           (SELECT extract(epoch FROM sum(upper(busy) - lower(busy))) FROM unnest(range_agg(tstzrange(started, ended))) busy) AS s
      FROM moved, (VALUES ('dashb_mbps_1h', interval '1 hour'), ('dashb_mbps_1d', interval '1 day'),
                          ('dashb_mbps_1w', interval '7 days')) w (key, length)
     WHERE status = 'done' AND ended >= %(now)s - w.length AND bytes > 0 AND started < ended GROUP BY src, dst, w.key),
counts AS (
    SELECT src, dst, activity || w.key AS key, count(*) FILTER (WHERE CASE w.key
               WHEN '_queued' THEN status IN ('queued', 'active')
               WHEN '_failed_1h' THEN status = 'failed' AND ended >= %(now)s - interval '1 hour'
               WHEN '_done_1h' THEN status = 'done' AND ended >= %(now)s - interval '1 hour'
               ELSE status = 'done' AND ended >= %(now)s - interval '6 hours' END) AS value
      FROM moved, (VALUES ('_queued'), ('_done_1h'), ('_done_6h'), ('_failed_1h')) w (key) GROUP BY src, dst, activity, w.key)
INSERT INTO network_matrix_kv (src, dst, key, value, ts)
SELECT src, dst, key, mb / s, %(now)s FROM speeds WHERE s > 0
 UNION ALL SELECT src, dst, key, value, %(now)s FROM counts
 ORDER BY 1, 2, 3
    ON CONFLICT (src, dst, key) DO UPDATE SET value = excluded.value, ts = excluded.ts
"""


def write(now: datetime) -> int:
    """Write what the transfers of the last week show. Returns how many numbers there are."""
    with hot_cursor() as cursor:
        cursor.execute(_WRITE, {"now": now})
        return cursor.rowcount


def forget(now: datetime, limit: int = 5000) -> int:
    """Rules that ended long ago, and on whose ends somebody has acted, are deleted with their requests. Returns how many."""
    with hot_cursor() as cursor:
        cursor.execute(
            """WITH old AS (SELECT id FROM transfer_rules WHERE ended < %s AND is_settled ORDER BY ended LIMIT %s),
                    gone AS (DELETE FROM transfer_requests q USING old WHERE q.rule_id = old.id)
               DELETE FROM transfer_rules r USING old WHERE r.id = old.id""",
            [now - KEPT_FOR, limit],
        )
        return cursor.rowcount
