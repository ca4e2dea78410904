"""Ends of jobs by worker node, and which nodes are black holes."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from tasks_app.failures.rules.black_holes import LEAST_FAILED, BlackHole, NodeEnds, SiteEnds, black_holes

MOST_NODES = 200


def failing_nodes(since: datetime, until: datetime, site: str | None = None) -> list[NodeEnds]:
    """The nodes on which most jobs failed between two times, at one site or everywhere. One query.

    Finished jobs are counted by full hours.
    """
    return _ends(since, until, site)[0]


def _ends(since: datetime, until: datetime, site: str | None) -> tuple[list[NodeEnds], dict[str, SiteEnds]]:
    """The nodes, and what ended at the sites that they belong to. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH busy AS MATERIALIZED (
                   SELECT computingsite, node, count(*) AS failed FROM job_failures
                    WHERE ended >= %(since)s AND ended < %(until)s AND node <> ''
                      AND (%(site)s::text IS NULL OR computingsite = %(site)s)
                    GROUP BY 1, 2 HAVING count(*) >= %(least)s ORDER BY 3 DESC LIMIT %(most)s),
               walltimes AS (
                   SELECT f.computingsite, f.node, percentile_disc(0.5) WITHIN GROUP (ORDER BY f.walltime_s) AS median
                     FROM job_failures f JOIN busy USING (computingsite, node)
                    WHERE f.ended >= %(since)s AND f.ended < %(until)s GROUP BY 1, 2),
               sites AS (
                   SELECT key AS computingsite, sum(finished) AS finished, sum(failed) AS failed FROM job_ends
                    WHERE dimension = 'site' AND key = ANY(ARRAY(SELECT computingsite FROM busy))
                      AND hour >= date_trunc('hour', %(since)s::timestamptz) AND hour < %(until)s GROUP BY 1)
               SELECT computingsite, node, busy.failed, median,
                      coalesce((SELECT sum(finished) FROM job_ends e WHERE e.dimension = 'node' AND e.key = busy.node
                                   AND e.hour >= date_trunc('hour', %(since)s::timestamptz) AND e.hour < %(until)s), 0),
                      s.finished, s.failed
                 FROM busy JOIN walltimes USING (computingsite, node) LEFT JOIN sites s USING (computingsite)
                ORDER BY busy.failed DESC, 1, 2""",
            {"since": since, "until": until, "site": site, "least": LEAST_FAILED, "most": MOST_NODES},
        )
        rows = cursor.fetchall()
    nodes = [NodeEnds(name, node, int(done), failed, float(m)) for name, node, failed, m, done, _, _ in rows]
    return nodes, {row[0]: SiteEnds(int(row[5]), int(row[6])) for row in rows if row[5] is not None}


def find_black_holes(since: datetime, until: datetime, site: str | None = None) -> list[BlackHole]:
    """The black holes at one site or everywhere between two times, the worst first. One query."""
    return black_holes(*_ends(since, until, site))
