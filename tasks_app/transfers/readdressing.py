"""Whoever reads a file next does so where it is good: addresses of inputs follow the first place of their file."""

from __future__ import annotations

from typing import Any

import psycopg

from jedisite.database.sql import texts
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.transfers.replicas import Place

_NEW_PLACE = """
  FROM catalogue_files k WHERE k.lfn = %(lfn)s AND k.scope = %(scope)s AND k.url <> %(bad)s"""


def readdress(cursor: psycopg.Cursor[Any], bad: Place) -> None:
    """Whoever reads the file next reads it at its first place, which is another now, if there is one."""
    values = {"scope": bad.scope, "lfn": bad.lfn, "bad": bad.url, "queued": texts(sorted(JOB_QUEUED))}
    cursor.execute(
        f"""UPDATE jedi_dataset_contents c SET surl = k.url {_NEW_PLACE}
               AND c.lfn = %(lfn)s AND c.scope = %(scope)s AND c.type = 'input' AND c.surl = %(bad)s""",  # noqa: S608
        values,
    )
    cursor.execute(
        f"""UPDATE job_files f SET surl = k.url {_NEW_PLACE} AND f.type = 'input' AND f.surl = %(bad)s AND f.pandaid IN (
                   SELECT c.pandaid FROM jedi_dataset_contents c JOIN jobs j USING (pandaid)
                    WHERE c.lfn = %(lfn)s AND c.scope = %(scope)s AND j.jobstatus = ANY(%(queued)s::text[]))
               AND f.lfn = %(lfn)s""",  # noqa: S608
        values,
    )
