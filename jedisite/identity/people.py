"""Accounts for people whom another issuer vouches for. An issuer and its subject belong to one account for ever.

The name that an issuer gives somebody is never enough to get at an account that is there already: names are handed out
again, and every issuer has its own ada. Only an administrator binds a foreign identity to an existing account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q, Value
from django.db.models.functions import Concat, Lower, Trim
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied

from jedisite import audit
from jedisite.identity.oidc import Vouched
from jedisite.models import ForeignIdentity

log = structlog.get_logger(__name__)

USERNAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
LONGEST_NAME = 150
LONGEST_SUBJECT = 255


def known_user(issuer: str, subject: str) -> User | None:
    """The user bound to that identity. Raises AuthenticationFailed when the account is disabled."""
    found = ForeignIdentity.objects.select_related("user").filter(issuer=issuer, subject=subject).first()
    if found is None:
        return None
    if not found.user.is_active:
        raise AuthenticationFailed(f"The account {found.user.get_username()} is disabled.")
    return found.user


def user_of(vouched: Vouched) -> User:
    """The user that a token stands for, made when the provider may. Raises AuthenticationFailed, PermissionDenied."""
    provider, subject = vouched.provider, vouched.subject
    if not subject or len(subject) > LONGEST_SUBJECT or "\x00" in subject:
        raise AuthenticationFailed("The token's sub cannot be stored as a name.")
    known = known_user(provider.issuer, subject)
    if known is not None:
        return known
    name = username_in(vouched.claims)
    if not provider.make_users:
        raise PermissionDenied(f"{name} of {provider.vo} has no account at this site; ask an administrator for one.")
    try:
        with transaction.atomic():
            return _make(vouched, name)
    except IntegrityError:
        # Another request of the same person was first, or somebody has that name.
        known = known_user(provider.issuer, subject)
        if known is not None:
            return known
    raise PermissionDenied(
        f"This site already has an account named {name} that is not linked to your token; an administrator can link them."
    )


def accounts_named(given: Iterable[str]) -> list[str]:
    """The accounts that people mean by these names: account names or full names, in any case of letters. One query."""
    wanted = sorted({" ".join(name.split()).casefold() for name in given} - {""})
    if not wanted:
        return []
    named = User.objects.annotate(
        account=Lower("username"), full=Lower(Trim(Concat("first_name", Value(" "), "last_name")))
    )
    found = named.filter(Q(account__in=wanted) | Q(full__in=wanted)).order_by("username")
    return list(found.values_list("username", flat=True))


def username_in(claims: Mapping[str, Any]) -> str:
    """The name that an account is to have. Raises PermissionDenied when the token has none that fits."""
    for key in ("preferred_username", "sub"):
        name = claims.get(key)
        if isinstance(name, str) and USERNAME.fullmatch(name):
            return name
    raise PermissionDenied(
        "The token has neither a preferred_username nor a sub that can name an account:"
        " up to 64 letters, digits and . _ @ + -, the first a letter or digit."
    )


def _make(vouched: Vouched, name: str) -> User:
    """Make an account and bind it. Raises IntegrityError when there is one of that name, in any case of letters."""
    if User.objects.filter(username__iexact=name).exists():
        raise IntegrityError(name)
    claims = vouched.claims
    full = str(claims.get("name") or "").replace("\x00", "")
    first, _, last = full.strip().rpartition(" ")
    email = claims.get("email") if claims.get("email_verified") is True else ""
    user = User(username=name, first_name=first[:LONGEST_NAME], last_name=last[:LONGEST_NAME], email=_email(email))
    user.set_unusable_password()
    user.save()
    row = ForeignIdentity.objects.create(issuer=vouched.provider.issuer, subject=vouched.subject, user=user)
    audit.record(name, "user.make", "user", user.pk, details={"issuer": row.issuer, "subject": row.subject})
    log.info("user.made", user=name, vo=vouched.provider.vo)
    return user


def _email(value: Any) -> str:
    try:
        validate_email(value)
    except ValidationError:
        return ""
    return value if len(value) <= 254 else ""
