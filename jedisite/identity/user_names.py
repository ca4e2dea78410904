"""Names of the accounts of this site, where one was misspelt."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User

from jedisite.vocabulary.words import nearest

MOST_USERS = 2000
"""So many users are compared with a name that is none's."""


def active_users() -> Iterable[str]:
    """Names of accounts that are in use, those first that logged in last; `MOST_USERS` at most. One statement."""
    return User.objects.filter(is_active=True).order_by("-last_login").values_list("username", flat=True)[:MOST_USERS]


def meant(name: str) -> str:
    """What follows the sentence on a user who is not there: " Did you mean ada?", or "" where no name is near."""
    near = nearest(name, active_users())
    return f" Did you mean {near}?" if near else ""
