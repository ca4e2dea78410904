"""The one statement of the search: a part for each kind, each of which looks at no more than a limited number of rows.

Parameters: `text`; `words`, a tsquery; `likes`, a pattern for each word; `number` or null; `masked`, the text as a fingerprint
has it; `most`, so many of a kind. A part gives key, name, more, exact, within and rank, as `finding.Found` has them.
"""

# ruff: noqa: S608 - tables and columns of ours
from __future__ import annotations

from typing import Final

MOST_COUNTED: Final = 1000
"""Rows of a kind that are counted; where there are more, the page says so."""
_COUNTED: Final = f"LIMIT {MOST_COUNTED + 1}"
_NEWEST_TASKS: Final = 100
_MOST_FILES: Final = 200
_HAS: Final = "@@ %(words)s::tsquery"

_TASK_COLUMNS: Final = "jeditaskid, taskname, status, username"
_TASKS: Final = f"""
WITH few AS MATERIALIZED (SELECT {_TASK_COLUMNS} FROM jedi_tasks WHERE search_words(taskname) {_HAS} {_COUNTED}),
     -- Where very many have the words, the index brings the oldest, and some of the newest have them.
     newest AS (SELECT {_TASK_COLUMNS} FROM (SELECT * FROM jedi_tasks ORDER BY jeditaskid DESC LIMIT {_NEWEST_TASKS}) n
                 WHERE (SELECT count(*) FROM few) > {MOST_COUNTED} AND search_words(taskname) {_HAS}),
     named AS (SELECT {_TASK_COLUMNS} FROM jedi_tasks WHERE taskname = %(text)s ORDER BY jeditaskid DESC LIMIT %(most)s),
     numbered AS (SELECT {_TASK_COLUMNS} FROM jedi_tasks WHERE jeditaskid = %(number)s),
     every AS (TABLE few UNION TABLE newest UNION TABLE named UNION TABLE numbered)
SELECT jeditaskid AS key, coalesce(taskname, '') AS name, jeditaskid || ', ' || status || ', of ' || username AS more,
       coalesce(taskname = %(text)s OR jeditaskid = %(number)s, false) AS exact, '' AS within, jeditaskid AS rank FROM every"""
_JOBS: Final = """
SELECT pandaid AS key, pandaid AS name, concat_ws(', ', jobstatus, 'at ' || computingsite, 'task ' || jeditaskid) AS more,
       true AS exact, '' AS within, 0 AS rank
  FROM (SELECT pandaid, jobstatus, computingsite, jeditaskid FROM jobs WHERE pandaid = %(number)s
        UNION ALL
        SELECT pandaid, jobstatus, computingsite, jeditaskid FROM jobs_archive WHERE pandaid = %(number)s) j"""
_WORKFLOWS: Final = f"""
SELECT id AS key, name, id || ', of ' || owner AS more, coalesce(name = %(text)s OR id = %(number)s, false) AS exact,
       '' AS within, id AS rank
  FROM workflows WHERE id = %(number)s OR name ILIKE ALL (%(likes)s) {_COUNTED}"""
_ERRORS: Final = f"""
SELECT id AS key, coalesce(nullif(text, ''), 'no message') AS name,
       CASE component WHEN '' THEN 'no error' ELSE component || ':' || code END || ', ' || category AS more,
       (text <> '' AND text = %(masked)s) OR component || ':' || code = %(text)s AS exact, '' AS within,
       extract(epoch FROM last_seen) AS rank
  FROM error_fingerprints
 WHERE search_words(component || ' ' || code || ' ' || text || ' ' || example) {_HAS} {_COUNTED}"""
_SITES: Final = f"""
SELECT name AS key, name, status || coalesce(', site ' || nullif(site_name, ''), '') AS more,
       lower(%(text)s) IN (lower(name), lower(site_name)) AS exact, '' AS within, 0 AS rank
  FROM queues WHERE name ILIKE ALL (%(likes)s) OR site_name ILIKE ALL (%(likes)s) {_COUNTED}"""
_NODES: Final = f"""
SELECT node AS key, node AS name, 'at ' || computingsite AS more, node = %(text)s AS exact,
       coalesce((SELECT name FROM queues WHERE name = computingsite), '') AS within,
       extract(epoch FROM last_seen) AS rank
  FROM job_nodes WHERE search_words(node) {_HAS} {_COUNTED}"""
# A dataset of the catalogue has a page, from which its uses are a step away. Others have the page of their newest use.
_DATASETS: Final = f"""
WITH kept AS (SELECT id, name, owner FROM catalogue_datasets WHERE search_words(name) {_HAS} {_COUNTED}),
     used AS (SELECT datasetid, datasetname, type, jeditaskid FROM jedi_datasets
               WHERE search_words(datasetname) {_HAS} {_COUNTED}),
     named AS (SELECT datasetid, datasetname, type, jeditaskid FROM jedi_datasets
                WHERE datasetname = %(text)s OR containername = %(text)s ORDER BY datasetid DESC LIMIT 1)
SELECT id AS key, name, 'of ' || coalesce(nullif(owner, ''), 'this site') AS more,
       name IN (%(text)s, %(text)s || '/') AS exact, 'catalogue' AS within, 1 AS rank FROM kept
UNION ALL
SELECT * FROM (SELECT DISTINCT ON (datasetname) datasetid, datasetname, type || ' of task ' || jeditaskid,
                      datasetid = (SELECT datasetid FROM named)
                      AND NOT EXISTS (SELECT FROM catalogue_datasets WHERE name IN (%(text)s, %(text)s || '/')), '', 0
                 FROM (TABLE named UNION TABLE used) u
                WHERE NOT EXISTS (SELECT FROM catalogue_datasets c WHERE c.name = datasetname)
                ORDER BY datasetname, datasetid DESC) uses"""
_FILES: Final = f"""
SELECT DISTINCT ON (lfn) dataset AS key, lfn AS name, said AS more, lfn = %(text)s AS exact, within, 0 AS rank
  FROM ((SELECT dataset_id AS dataset, lfn, 'in the catalogue' AS said, 'catalogue' AS within, 0 AS id FROM catalogue_files
          WHERE lfn >= %(text)s ORDER BY lfn LIMIT {_MOST_FILES})
        UNION ALL
        (SELECT datasetid, lfn, type || ' of task ' || jeditaskid || ', ' || status, '', fileid FROM jedi_dataset_contents
          WHERE lfn >= %(text)s ORDER BY lfn LIMIT {_MOST_FILES})) f
 WHERE starts_with(lfn, %(text)s) AND length(%(text)s) > 2 ORDER BY lfn, id DESC"""
# Names of users of tasks come from an index, one step for each of them.
_USERS: Final = f"""
WITH RECURSIVE owner (name) AS (
    SELECT min(username) FROM jedi_tasks WHERE username >= %(text)s
    UNION ALL
    SELECT (SELECT min(username) FROM jedi_tasks WHERE username > owner.name) FROM owner WHERE starts_with(owner.name, %(text)s)),
owners AS (SELECT name FROM owner WHERE starts_with(name, %(text)s) LIMIT 50),
accounts AS (SELECT username, trim(first_name || ' ' || last_name) AS called FROM auth_user
              WHERE username || ' ' || first_name || ' ' || last_name ILIKE ALL (%(likes)s) {_COUNTED})
SELECT username AS key, username AS name, called AS more, lower(%(text)s) IN (lower(username), lower(called)) AS exact,
       '' AS within, 0 AS rank FROM accounts
UNION ALL
SELECT name, name, '', name = %(text)s, '', 0 FROM owners WHERE name NOT IN (SELECT username FROM accounts)"""
_QUEUES: Final = f"""
SELECT queue_id AS key, queue_name AS name, concat_ws(', ', queue_type, vo) AS more, lower(queue_name) = lower(%(text)s) AS exact,
       '' AS within, 0 AS rank
  FROM jedi_work_queue WHERE queue_name ILIKE ALL (%(likes)s) {_COUNTED}"""
_SHARES: Final = f"""
SELECT name AS key, name, coalesce('below ' || parent, '') AS more, lower(name) = lower(%(text)s) AS exact,
       '' AS within, 0 AS rank
  FROM global_shares WHERE name ILIKE ALL (%(likes)s) {_COUNTED}"""
PARTS: Final = {
    "task": _TASKS,
    "job": _JOBS,
    "workflow": _WORKFLOWS,
    "error": _ERRORS,
    "site": _SITES,
    "node": _NODES,
    "dataset": _DATASETS,
    "file": _FILES,
    "user": _USERS,
    "queue": _QUEUES,
    "share": _SHARES,
}
STATEMENT: Final = " UNION ALL ".join(
    f"""(SELECT '{kind}', key::text, name::text, more, exact, within::text, count(*) OVER () FROM ({part}) {kind}s
          ORDER BY exact DESC, rank DESC, name LIMIT %(most)s)"""
    for kind, part in PARTS.items()
)
