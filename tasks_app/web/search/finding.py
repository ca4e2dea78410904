"""What is found for a text, by kind, in two statements."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from django.db import connection

from jedisite import refusals
from tasks_app.domain import search_words
from tasks_app.domain.fingerprints import normalised
from tasks_app.domain.words import COUNT_CAP
from tasks_app.web.frame import keyset_pages
from tasks_app.web.search.search_statement import MOST_COUNTED, STATEMENT

TITLES: Final = {
    "task": "Tasks",
    "job": "Jobs",
    "workflow": "Workflows",
    "error": "Errors",
    "site": "Sites",
    "node": "Worker nodes",
    "dataset": "Datasets",
    "file": "Files",
    "user": "Users",
    "queue": "Work queues",
    "share": "Shares",
    "reason": "Reasons",
}
"""Kinds of what can be found, in the order of the page, with their headings."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was found: `key` leads to its page, `more` tells it from others, `exact` when the text is its whole name
    or number. `within` is the queue of a node, if it still exists, and `catalogue` for what the local catalogue has."""

    kind: str
    key: str
    name: str
    more: str
    exact: bool
    within: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of a kind, the best first. `count` is of all that were found, to just above MOST_COUNTED."""

    kind: str
    count: int
    found: list[Found]

    @property
    def title(self) -> str:
        return TITLES[self.kind]

    @property
    def counted(self) -> str:
        return f"{MOST_COUNTED}+" if self.count > MOST_COUNTED else str(self.count)


def find(text: str, most: int) -> list[Group]:
    """Up to `most` of each kind that have all words of the text, in the order of TITLES. One statement.

    A message of a job in which numbers or names differ from those of the first such job is found by what is left of it.
    """
    groups = _find(text, most)
    masked = normalised(text)
    if not groups and search_words.query_of(masked) != search_words.query_of(text):
        groups = [group for group in _find(masked, most) if group.kind == "error"]
    return groups


def _find(text: str, most: int) -> list[Group]:
    words = search_words.words_of(text)
    if not words:
        return []
    parameters = {
        "text": text,
        "words": search_words.query_of(text),
        "likes": [f"%{word}%" for word in words],
        "number": keyset_pages.number(text),
        "masked": normalised(text),
        "most": most,
    }
    found, counts = defaultdict(list), {}
    with connection.cursor() as cursor:
        cursor.execute(STATEMENT, parameters)
        for kind, key, name, more, exact, within, count in cursor.fetchall():
            found[kind].append(Found(kind, key, name, more, exact, within))
            counts[kind] = count
    reasons = _reasons(text, words)
    found["reason"], counts["reason"] = reasons[:most], len(reasons)
    return [Group(kind, counts[kind], found[kind]) for kind in TITLES if found[kind]]


def _reasons(text: str, words: list[str]) -> list[Found]:
    """Codes of reasons with all the words in their name or title."""
    found = []
    for code in refusals.all_codes():
        title = refusals.get(code).title
        said = f"{code} {title}".lower()
        if all(word.lower() in said for word in words):
            found.append(Found("reason", code, title, code, exact=text.lower() in (code, title.lower())))
    return sorted(found, key=lambda reason: not reason.exact)


def failures_of(fingerprints: list[int]) -> dict[int, int]:
    """Jobs that failed within seven days by fingerprint, each counted to just above COUNT_CAP. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT number, (SELECT count(*) FROM (
                          SELECT FROM job_failures
                           WHERE fingerprint_id = number AND ended >= now() - interval '7 days' LIMIT %s) j)
                 FROM unnest(%s::int[]) number""",
            [COUNT_CAP + 1, fingerprints],
        )
        return dict(cursor.fetchall())
