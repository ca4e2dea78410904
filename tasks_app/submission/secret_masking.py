"""The secrets that a job was given are masked in what is said of it, before that is stored.

Our pilot and our transforms mask them first. Other pilots and programs do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.dispatch.job_secrets import secrets_as_text
from tasks_app.params import special_handling
from tasks_app.worker_node.pilot.masking import mask_text, needles_of

if TYPE_CHECKING:
    from tasks_app.dispatch.reports import Report

_GIVEN = """
SELECT pandaid, produsername FROM jobs
 WHERE pandaid = ANY(%s::bigint[]) AND %s = ANY(string_to_array(specialhandling, ','))
"""


def masked_reports(reports: Mapping[int, Report]) -> dict[int, Report]:
    """Those of the final reports, by any number, in which something had to be masked: one statement for all of them."""
    telling = {n: one for n, one in reports.items() if one.metadata is not None or any(_texts(one).values())}
    needles = _needles({one.job_id for one in telling.values()})
    return {n: _masked(one, needles[one.job_id]) for n, one in telling.items() if one.job_id in needles}


def masked_words(words: Mapping[int, str]) -> dict[int, str]:
    """Texts by the number of the job that they are about, masked."""
    needles = _needles(words.keys())
    return {job: mask_text(text, needles.get(job, ())) for job, text in words.items()}


def _needles(jobs: Collection[int]) -> dict[int, list[bytes]]:
    """What is looked for, for those of the jobs that were given secrets."""
    if not jobs:
        return {}
    with hot_cursor() as cursor:
        cursor.execute(_GIVEN, [numbers(jobs), special_handling.SECRETS])
        users = dict(cursor.fetchall())
    found = {user: needles_of(secrets_as_text(user)) for user in set(users.values())}
    return {job: found[user] for job, user in users.items()}


def _texts(report: Report) -> dict[str, str]:
    return {key: value for key, value in report.errors.items() if isinstance(value, str)}


def _masked(report: Report, needles: list[bytes]) -> Report:
    texts = {key: mask_text(text, needles) for key, text in _texts(report).items()}
    return replace(report, errors={**report.errors, **texts}, metadata=_value(report.metadata, needles))


def _value(value: Any, needles: list[bytes]) -> Any:
    """A value of JSON. What comes as a request is not deeper than Python's calls may be."""
    if isinstance(value, str):
        return mask_text(value, needles)
    if isinstance(value, list):
        return [_value(one, needles) for one in value]
    if isinstance(value, dict):
        return {mask_text(key, needles): _value(one, needles) for key, one in value.items()}
    return value
