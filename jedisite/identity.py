"""Who is calling and what they may do: one table for the whole site.

A caller is known by a session (people in the browser) or a bearer token (scripts, pilots, workers). Every view names the
right that it needs; a view that names none answers nobody.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import wraps
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.utils import timezone
from rest_framework import authentication, exceptions
from rest_framework.permissions import BasePermission

from jedisite import token_text
from jedisite.models import ApiToken


class Role(StrEnum):
    ANONYMOUS = "anonymous"
    USER = "user"
    SHIFTER = "shifter"
    PRODUCTION = "production"
    ADMINISTRATOR = "administrator"
    PILOT = "pilot"
    WORKER = "worker"


class Right(StrEnum):
    NOTHING = "nothing"  # open to anybody: the site's health, transforms that ship with it
    READ = "read"  # look at tasks, jobs, agents
    SUBMIT = "submit"  # submit tasks, command one's own
    COMMAND_ANY = "command any"  # command anybody's tasks
    STEER = "steer"  # reassign and release tasks, change their priorities, shares and needs
    OPERATE = "operate"  # run and pause agents
    PILOT = "pilot"  # fetch jobs and report on them
    SITE_DATA = "site data"  # descriptions of queues and storage
    TELL = "tell"  # send messages of other systems in


ALL = frozenset({Right.NOTHING})
RIGHTS: dict[Role, frozenset[Right]] = {
    Role.ANONYMOUS: ALL,
    Role.USER: ALL | {Right.READ, Right.SUBMIT, Right.SITE_DATA},
    Role.SHIFTER: ALL | {Right.READ, Right.SUBMIT, Right.SITE_DATA, Right.OPERATE},
    Role.PRODUCTION: ALL | {Right.READ, Right.SUBMIT, Right.SITE_DATA, Right.COMMAND_ANY, Right.STEER, Right.TELL},
    Role.ADMINISTRATOR: ALL
    | {Right.READ, Right.SUBMIT, Right.SITE_DATA, Right.COMMAND_ANY, Right.STEER, Right.OPERATE, Right.TELL},
    Role.PILOT: ALL | {Right.PILOT, Right.SITE_DATA},
    Role.WORKER: ALL | {Right.SITE_DATA, Right.TELL},
}
GROUP_ROLES = {"shift": Role.SHIFTER, "production": Role.PRODUCTION}
MANAGER_OF = "manager:"
"""Begins the names of Django's groups whose members command the tasks of a working group: manager:phys-higgs."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who calls: a name for the logs, roles, and for a pilot the site it may serve ("" is any)."""

    name: str
    roles: frozenset[Role]
    site: str = ""

    def may(self, right: Right) -> bool:
        return any(right in RIGHTS[role] for role in self.roles)

    def may_command(self, task_owner: str) -> bool:
        """Whether this caller may command a task of that owner."""
        return self.may(Right.COMMAND_ANY) or (self.may(Right.SUBMIT) and self.name == task_owner)


NOBODY = Caller("", frozenset({Role.ANONYMOUS}))


def issue_token(name: str, kind: str, *, user: User | None = None, site: str = "", lifetime: timedelta) -> str:
    """Make a token of kind user, pilot or worker, and return it. It cannot be read again: only its hash is stored.

    A token of kind user belongs to `user`, and has the shape of a JWT (see token_text).
    """
    expires = timezone.now() + lifetime
    token = token_text.of_user(user, groups_managed_by(user), expires) if user else token_text.opaque()
    ApiToken.objects.create(
        name=name,
        kind=kind,
        user=user,
        site=site,
        prefix=token_text.shown(token),
        digest=_digest(token),
        expires=expires,
    )
    return token


def row_of_token(token: str) -> ApiToken | None:
    """The row of a token, whatever its state."""
    return ApiToken.objects.filter(digest=_digest(token)).first()


def revoke_token(row: ApiToken) -> None:
    """Make a token worthless: at once in this process, within CACHE_S in the others."""
    row.revoked = True
    row.save(update_fields=["revoked"])
    _known.pop(bytes(row.digest), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


CACHE_S = 5.0
"""Seconds for which a process trusts a token it has looked up; a revoked token works that long at most."""
_known: dict[bytes, tuple[float, Caller]] = {}


def caller_of_token(token: str) -> Caller | None:
    """The caller that a bearer token stands for; None when it is unknown, expired or revoked."""
    digest = _digest(token)
    now = time.monotonic()
    found = _known.get(digest)
    if found and found[0] > now:
        return found[1]
    caller = _look_up(digest)
    if caller is None:
        _known.pop(digest, None)
        return None
    if len(_known) > 10_000:
        _known.clear()
    _known[digest] = (now + CACHE_S, caller)
    return caller


def _look_up(digest: bytes) -> Caller | None:
    with connection.cursor() as cursor:
        cursor.execute(
            """UPDATE api_tokens SET last_used = clock_timestamp()
                WHERE digest = %s AND NOT revoked AND expires > clock_timestamp() RETURNING kind, user_id, site, name""",
            [digest],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    kind, user_id, site, name = row
    if kind == "user":
        user = User.objects.filter(pk=user_id, is_active=True).first()
        return caller_of_user(user) if user else None
    return Caller(f"{kind}:{name}", frozenset({Role(kind)}), site)


def caller_of_user(user: AbstractBaseUser | AnonymousUser | User) -> Caller:
    if not isinstance(user, User) or not user.is_active:
        return NOBODY
    roles = {Role.USER} | {GROUP_ROLES[g] for g in user.groups.values_list("name", flat=True) if g in GROUP_ROLES}
    if user.is_superuser:
        roles.add(Role.ADMINISTRATOR)
    return Caller(user.get_username(), frozenset(roles))


def groups_managed_by(user: User) -> list[str]:
    """The working groups whose tasks this user may command."""
    names = user.groups.filter(name__startswith=MANAGER_OF).order_by("name").values_list("name", flat=True)
    return [name.removeprefix(MANAGER_OF) for name in names]


def bearer(request: HttpRequest) -> str | None:
    """The token in the Authorization header, if one is there."""
    header = request.META.get("HTTP_AUTHORIZATION", "")
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def caller_by_token(request: HttpRequest) -> Caller | None:
    """Who makes this request, by its bearer token; None without one that holds."""
    token = bearer(request)
    return caller_of_token(token) if token else None


def caller_of(request: HttpRequest) -> Caller:
    """Who makes this request. A token counts before a session; a bad token is nobody."""
    known = getattr(request, "caller", None)
    if known is None:
        known = (caller_by_token(request) or NOBODY) if bearer(request) else caller_of_user(request.user)
        request.caller = known  # type: ignore[attr-defined]
    return known


def needs(right: Right) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """For plain views: answer only callers with this right.

    Anonymous people are sent to the login page; programs (a bad token, an address of the API) get a 401.
    """

    def wrap(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            caller = caller_of(request)
            if caller.may(right):
                return view(request, *args, **kwargs)
            if caller is NOBODY:
                return _who_are_you(request)
            raise PermissionDenied(f"this needs the right to {right.value}")

        guarded.right = right  # type: ignore[attr-defined]
        return guarded

    return wrap


def _who_are_you(request: HttpRequest) -> HttpResponse:
    from django.contrib.auth.views import redirect_to_login

    if not request.path.startswith("/api/") and bearer(request) is None:
        return redirect_to_login(request.get_full_path())
    sentence = "A valid bearer token is needed.\n"
    return HttpResponse(sentence, status=401, content_type="text/plain", headers={"WWW-Authenticate": "Bearer"})


class TokenUser(AnonymousUser):
    """Stands in for the user of a request that came with a token."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.username = caller.name  # type: ignore[assignment]

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        return True


class TokenAuthentication(authentication.BaseAuthentication):
    """Bearer tokens for the REST framework."""

    def authenticate(self, request: Any) -> tuple[Any, Caller] | None:
        if bearer(request) is None:
            return None
        caller = caller_by_token(request)
        if caller is None:
            raise exceptions.AuthenticationFailed("The token is unknown, expired or revoked.")
        return TokenUser(caller), caller

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """Browser sessions for the REST framework, with the check against cross-site requests."""

    def authenticate(self, request: Any) -> tuple[Any, Any] | None:
        found = super().authenticate(request)
        return (found[0], caller_of_user(found[0])) if found else None


class HasRight(BasePermission):
    """Each view says what it needs: `rights = {"list": Right.READ, ...}` by action or method."""

    def has_permission(self, request: Any, view: Any) -> bool:
        rights = getattr(view, "rights", None)
        if rights is None:
            raise ImproperlyConfigured(f"{type(view).__name__} names no right")
        method = request.method.lower()
        answered = getattr(view, "action_map", None)
        if method == "options" or (method not in answered if answered is not None else not hasattr(view, method)):
            raise exceptions.MethodNotAllowed(request.method)
        right = rights.get(getattr(view, "action", None) or ("get" if method == "head" else method))
        return right is not None and api_caller(request).may(right)


def api_caller(request: Any) -> Caller:
    """Who makes this request of the REST framework."""
    return request.auth if isinstance(request.auth, Caller) else caller_of_user(request.user)
