"""Tokens that people make and revoke for themselves: on the site's page, over the API and at the command line."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from jedisite import audit
from jedisite.identity import oidc
from jedisite.identity.callers import bearer, issue_token, revoke_token, row_of_token
from jedisite.identity.token_text import is_ours
from jedisite.models import ApiToken
from jedisite.vocabulary.roles import Scope

MOST_TOKENS = 100
"""Valid tokens of one user."""
LONGEST_DAYS = 365
USUAL_DAYS = 30


class NoTokenError(Exception):
    """No token is made; the text says why."""


class NotAPersonError(NoTokenError):
    """Only people with an account make tokens."""


def of_user(username: str) -> QuerySet[ApiToken]:
    """The tokens that a user's scripts may have, the newest first."""
    return ApiToken.objects.filter(kind="user", user__username=username).order_by("-id")


def latest_end(request: HttpRequest) -> datetime | None:
    """When what is made in this request has to end: with the token that the request came with."""
    used = bearer(request)
    if not used:
        return None
    if not is_ours(used):
        return oidc.end_of(used)
    row = row_of_token(used)
    return row.expires if row else None


@transaction.atomic
def make(
    username: str, name: str, *, days: int, scope: Scope = Scope.ALL, by: str, ends: datetime | None = None
) -> tuple[str, ApiToken]:
    """A new token of that user and its row. It ends after so many days, or at `ends` if that is earlier.

    Raises NotAPersonError, and NoTokenError when the user has MOST_TOKENS valid ones.
    """
    # The lock keeps the number of tokens exact when several are asked for at once.
    user = User.objects.select_for_update().filter(username=username, is_active=True).first()
    if user is None:
        raise NotAPersonError("Only people can make tokens.")
    now = timezone.now()
    if of_user(username).filter(revoked=False, expires__gt=now).count() >= MOST_TOKENS:
        raise NoTokenError(f"You have {MOST_TOKENS} valid tokens; revoke one first.")
    lifetime = timedelta(days=days) if ends is None else min(timedelta(days=days), ends - now)
    token = issue_token(name, "user", user=user, scope=scope, lifetime=lifetime)
    row = row_of_token(token)
    assert row is not None
    details = {"name": row.name, "scope": row.scope, "expires": str(row.expires)}
    audit.record(by, "token.make", "token", row.id, details=details)
    return token, row


@transaction.atomic
def revoke(row: ApiToken, *, by: str) -> None:
    """Make a token worthless, and write down who did."""
    revoke_token(row)
    audit.record(by, "token.revoke", "token", row.id)
