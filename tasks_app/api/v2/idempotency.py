"""A submission that is sent again under the same key gets the answer of the first one."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from django.db import connection

from jedisite.web.problems import InvalidFields
from tasks_app.models import SubmissionKey

HEADER = "Idempotency-Key"
KEPT_HOURS = 24
CLEANED_AT_ONCE = 100
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


def checked_key(text: str | None) -> str | None:
    """The key of a request, None when it has none. Raises InvalidFields."""
    if text is None:
        return None
    if not _KEY.fullmatch(text):
        message = "A key has 1 to 255 printable ASCII characters."
        raise InvalidFields([{"field": HEADER, "rule": "characters", "message": message}])
    return text


def take(caller: str, key: str, body: Any) -> SubmissionKey:
    """Take a key inside the transaction that submits, or find who took it: then `reply` is filled.

    Waits while another request with the same key is under way. Raises InvalidFields when the key was used for
    another body.
    """
    fingerprint = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()
    _clean()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO submission_keys AS k (caller, key, fingerprint) VALUES (%s, %s, %s)
            ON CONFLICT (caller, key) DO UPDATE
               SET fingerprint = EXCLUDED.fingerprint, reply = NULL, jeditaskid = NULL, created = clock_timestamp()
             WHERE k.created < clock_timestamp() - %s * interval '1 hour'
            """,
            [caller, key, fingerprint, KEPT_HOURS],
        )
    row = SubmissionKey.objects.get(caller=caller, key=key)
    if bytes(row.fingerprint) != fingerprint:
        message = f"This key was used for another submission in the last {KEPT_HOURS} hours; use a new one."
        raise InvalidFields([{"field": HEADER, "rule": "use a new key for each submission", "message": message}])
    return row


def _clean() -> None:
    """Take old keys away, a few at a time."""
    with connection.cursor() as cursor:
        cursor.execute(
            """DELETE FROM submission_keys WHERE id IN (
                   SELECT id FROM submission_keys WHERE created < clock_timestamp() - %s * interval '1 hour'
                    ORDER BY created LIMIT %s FOR UPDATE SKIP LOCKED)""",
            [KEPT_HOURS, CLEANED_AT_ONCE],
        )
