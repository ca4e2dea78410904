"""Secrets of users for those of their jobs that ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tasks_app.params import special_handling
from tasks_app.submission.user_secrets import secrets_as_text


def give_secrets(jobs: Iterable[dict[str, Any]], words: Sequence[str | None]) -> None:
    """Put `secrets`, a JSON object as a text, into the jobs that ask for them. A query for each of their users.

    One that cannot be read any more leaves its jobs without: the payload says what it misses, the log why.
    """
    asking = [
        job for job, said in zip(jobs, words, strict=True) if special_handling.has(said, special_handling.SECRETS)
    ]
    found = {user: secrets_as_text(user) for user in {job["prodUserID"] for job in asking}}
    for job in asking:
        job["secrets"] = found[job["prodUserID"]]
