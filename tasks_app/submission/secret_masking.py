"""The secrets that a job was given are masked in what is said of it, before that is stored.

Our pilot and our transforms mask them first. Other pilots and programs do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.params import special_handling
from tasks_app.submission.user_secrets import secrets_as_text
from tasks_app.worker_node.pilot.masking import mask_text, needles_of

_GIVEN = """
SELECT pandaid, produsername FROM jobs
 WHERE pandaid = ANY(%s::bigint[]) AND %s = ANY(string_to_array(specialhandling, ','))
"""


def masked_words(words: Mapping[int, str]) -> dict[int, str]:
    """Texts by the number of the job that they are about, masked."""
    needles = needles_by_job(words.keys())
    return {job: mask_text(text, needles.get(job, ())) for job, text in words.items()}


def needles_by_job(jobs: Collection[int]) -> dict[int, list[bytes]]:
    """What is masked, for those of the jobs that were given secrets."""
    if not jobs:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(_GIVEN, [numbers(jobs), special_handling.SECRETS])
        users = dict(cursor.fetchall())
    found = {user: needles_of(secrets_as_text(user)) for user in set(users.values())}
    return {job: found[user] for job, user in users.items()}
