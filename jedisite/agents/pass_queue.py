"""The queue from which a cluster of django-q2 takes passes: its own table, asked ten times a second by one statement.

django-q2 asks through models, with two statements and a check of the connection, which was a fifth of what an idle site used;
and whenever the database was away it took nothing for ten seconds.
"""

from __future__ import annotations

import time
from datetime import timedelta

import structlog
from django.db import close_old_connections
from django.db.utils import DatabaseError, InterfaceError
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf

from jedisite.database.sql import hot_cursor

log = structlog.get_logger(__name__)
AWAY_S = 1.0


class PassQueue(ORM):
    """Each pass is taken once, the oldest first; one whose cluster died is taken again when `retry` seconds are over."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The number and text of one pass; None after a moment in which there was none."""
        close_old_connections()
        now = timezone.now()
        try:
            with hot_cursor() as cursor:
                cursor.execute(
                    """
                    UPDATE django_q_ormq SET lock = %s
                     WHERE id = (SELECT id FROM django_q_ormq WHERE key = %s AND lock < %s
                                  ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
                    RETURNING id, payload
                    """,
                    [now + timedelta(seconds=Conf.RETRY), self.list_key, now],
                )
                found = cursor.fetchall()
        except (DatabaseError, InterfaceError) as exc:
            log.warning("cluster.no_database", error=str(exc).strip())
            time.sleep(AWAY_S)
            return None
        if not found:
            time.sleep(Conf.POLL)
        return found or None
