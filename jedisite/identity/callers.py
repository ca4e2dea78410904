"""Who is calling and what they may do: one table for the whole site.

A caller is known by a session (people in the browser) or a bearer token (scripts, pilots, workers). Every view names the
right that it needs; a view that names none answers nobody.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.utils import timezone
from rest_framework import authentication, exceptions
from rest_framework.permissions import BasePermission

from jedisite.identity import oidc, people, token_text, x509
from jedisite.identity.session_users import UsersWithGroups, groups_of
from jedisite.models import ApiToken
from jedisite.vocabulary.roles import NOBODY, RIGHTS, Caller, Right, Role, Scope, asks_for_token

__all__ = ["NOBODY", "RIGHTS", "Caller", "Right", "Role", "Scope"]


GROUP_ROLES = {"shift": Role.SHIFTER, "production": Role.PRODUCTION}
MANAGER_OF = "manager:"
"""Begins the names of Django's groups whose members command the tasks of a working group: manager:phys-higgs."""
MEMBER_OF = "member:"
"""Begins the names of Django's groups whose members fetch the files that tasks of a working group made: member:phys-higgs."""
LONGEST_VO = 56
"""Characters of an organisation in a caller's name, which is to fit into columns of 128."""


def issue_token(
    name: str,
    kind: str,
    *,
    user: User | None = None,
    site: str = "",
    scope: Scope = Scope.ALL,
    lifetime: timedelta,
    worker: str = "",
    begins_with: str = "",
) -> str:
    """Make a token of kind user, pilot or worker, and return it. It cannot be read again: only its hash is stored.

    A token of kind user belongs to `user`, has the shape of a JWT (see token_text), and may be narrowed to a scope.
    One of kind pilot may be for a single `worker` of its site; see `Caller`.
    """
    expires = timezone.now() + lifetime
    token = token_text.of_user(user, groups_managed_by(user), expires) if user else token_text.opaque()
    ApiToken.objects.create(
        name=name,
        kind=kind,
        user=user,
        site=site,
        scope=scope,
        prefix=token_text.shown(token),
        digest=_digest(token),
        expires=expires,
        worker=worker,
        begins_with=begins_with,
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


def extend_tokens_of_workers(tokens: Collection[str], lifetime: timedelta) -> None:
    """From now on tokens of single workers live so long; also those that ended while nobody could extend them."""
    rows = ApiToken.objects.filter(digest__in=[_digest(token) for token in tokens], revoked=False).exclude(worker="")
    rows.update(expires=timezone.now() + lifetime)


def workers_of_tokens(tokens: Collection[str]) -> dict[str, tuple[str, str]]:
    """Worker and queue of each of these tokens that is one worker's."""
    digests = {_digest(token): token for token in tokens}
    rows = ApiToken.objects.filter(digest__in=list(digests)).exclude(worker="").values_list("digest", "worker", "site")
    return {digests[bytes(digest)]: (worker, site) for digest, worker, site in rows}


def end_tokens_of_workers(tokens: Collection[str]) -> None:
    """Tokens of workers that have ended open nothing within CACHE_S, and are removed when the ends are no longer counted."""
    digests, now, of_workers = [_digest(token) for token in tokens], timezone.now(), ApiToken.objects.exclude(worker="")
    of_workers.filter(digest__in=digests, revoked=False).update(revoked=True, expires=now)
    of_workers.filter(expires__lt=now - KEPT).delete()
    for digest in digests:
        _known.pop(digest, None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


OF_BROWSERS = frozenset({"basic", "digest", "negotiate", "ntlm"})
"""Schemes of Authorization headers that browsers send by themselves, once a proxy before the site has asked for them: they say
nothing about who calls here, and whoever comes with one may have a session."""
BAD_TOKEN = "The token is unknown, expired or revoked."
CACHE_S = 5.0
"""Seconds for which a process trusts a token it has looked up; a revoked token works that long at most."""
KEPT = timedelta(days=1)
"""How long the token of a worker stays that has ended, or whose machine has died: the ends of a day are counted."""
_known: dict[bytes, tuple[float, Caller]] = {}


def caller_of_token(token: str, origin: str = "") -> Caller | None:
    """The caller that a bearer token stands for; None when it is one of ours that is unknown, expired or revoked.

    `origin`: the Origin header, which names VO and role of tokens of other issuers. For those, AuthenticationFailed,
    PermissionDenied and IssuerSilent say what is wrong; the network may be asked, so not inside a transaction.
    """
    ours = token_text.is_ours(token)
    digest = _digest(token if ours else f"{origin}\n{token}")
    now = time.monotonic()
    found = _known.get(digest)
    if found and found[0] > now:
        return found[1]
    _known.pop(digest, None)
    until = now + CACHE_S
    if ours:
        looked_up = _look_up(digest)
        caller = looked_up.pop(digest, None)
        _remember({other: (until, whose) for other, whose in looked_up.items()})
    else:
        vouched = oidc.check(token, origin)
        caller = _vouched_for(vouched)
        until = min(until, now + int(vouched.claims["exp"]) + oidc.LEEWAY_S - time.time())
    if caller is None:
        return None
    _remember({digest: (until, caller)})
    return caller


def _remember(found: dict[bytes, tuple[float, Caller]]) -> None:
    if len(_known) + len(found) > 10_000:
        _known.clear()
    _known.update(found)


def _look_up(digest: bytes) -> dict[bytes, Caller]:
    """Whose token that is; and with that of a worker, the tokens of all workers of its queue.

    Each worker calls less often than every CACHE_S: looked up one by one, every call would cost a second statement.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH mine AS (
                UPDATE api_tokens SET last_used = clock_timestamp()
                 WHERE digest = %s AND NOT revoked AND expires > clock_timestamp()
                RETURNING digest, kind, user_id, site, name, scope, worker, begins_with)
               SELECT * FROM mine
               UNION ALL
               SELECT t.digest, t.kind, t.user_id, t.site, t.name, t.scope, t.worker, t.begins_with
                 FROM mine JOIN api_tokens t ON t.site = mine.site AND t.worker <> ''
                WHERE mine.worker <> '' AND t.digest <> mine.digest AND NOT t.revoked AND t.expires > clock_timestamp()""",
            [digest],
        )
        rows = cursor.fetchall()
    return {bytes(row[0]): caller for row in rows if (caller := _caller_of_row(*row[1:]))}


def _caller_of_row(
    kind: str, user_id: int | None, site: str, name: str, scope: str, worker: str, begins_with: str
) -> Caller | None:
    if kind == "user":
        user = UsersWithGroups().get_user(user_id) if user_id else None
        return replace(caller_of_user(user), scope=Scope(scope)) if user else None
    return Caller(f"{kind}:{name}", frozenset({Role(kind)}), site, Scope(scope), worker=worker, begins_with=begins_with)


def _vouched_for(vouched: oidc.Vouched) -> Caller:
    """Who comes with a token of another issuer. Pilots and workers need no account; people do."""
    vo, role = vouched.provider.vo, vouched.role
    if role in (Role.PILOT, Role.WORKER):
        people.known_user(vouched.provider.issuer, vouched.subject)  # not one that is switched off
        # Each organisation has its own ada, and what harvester's instances are belongs to names.
        return Caller(f"{role.value}:{people.username_in(vouched.claims)}@{vo[:LONGEST_VO]}", frozenset({role}), vo=vo)
    plain = caller_of_user(people.user_of(vouched))
    return replace(plain, roles=plain.roles | {role} if role else plain.roles, vo=vo)


def caller_of_user(user: AbstractBaseUser | AnonymousUser | User) -> Caller:
    if not isinstance(user, User) or not user.is_active:
        return NOBODY
    groups = groups_of(user)
    roles = {Role.USER} | {GROUP_ROLES[g] for g in groups if g in GROUP_ROLES}
    manages = frozenset(_working_groups(groups, MANAGER_OF))
    if manages:
        roles.add(Role.MANAGER)
    if user.is_superuser:
        roles.add(Role.ADMINISTRATOR)
    member_of = frozenset(_working_groups(groups, MEMBER_OF))
    return Caller(user.get_username(), frozenset(roles), manages=manages, member_of=member_of)


def groups_managed_by(user: User) -> list[str]:
    """The working groups whose tasks this user may command."""
    return _working_groups(groups_of(user), MANAGER_OF)


def _working_groups(groups: Iterable[str], begin: str) -> list[str]:
    """The working groups in names of Django's groups. Most tasks have none, so nobody is in the one without a name."""
    return [name.removeprefix(begin) for name in groups if name.startswith(begin) and name != begin]


def bearer(request: HttpRequest) -> str | None:
    """The token in the Authorization header, if one is there."""
    header: str = request.META.get("HTTP_AUTHORIZATION", "")
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def caller_by_token(request: HttpRequest) -> Caller | None:
    """The program that makes this request, by its bearer token, else by its certificate; None without a valid one.

    Raises what `caller_of_token` raises for tokens of other issuers.
    """
    token = bearer(request)
    if token:
        return caller_of_token(token, request.META.get("HTTP_ORIGIN", ""))
    return _caller_by_certificate(request) if settings.JEDI_X509_HEADER else None


def _caller_by_certificate(request: HttpRequest) -> Caller | None:
    user = x509.user_of(request)
    return caller_of_user(user) if user else None


def caller_of(request: HttpRequest) -> Caller:
    """Who makes this request. A token counts before a session; a bad token is nobody.

    Raises what `caller_of_token` raises for tokens of other issuers.
    """
    known = getattr(request, "caller", None)
    if known is None:
        known = caller_by_token(request)
        if known is None:
            known = NOBODY if bearer(request) else caller_of_user(request.user)
        request.caller = known  # type: ignore[attr-defined]
    return known


def needs(right: Right) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """For plain views: answer only callers with this right.

    Anonymous people are sent to the login page; programs (a bad token, an address of the API) get a 401.
    """

    def wrap(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if right is Right.NOTHING:
                # Who is wrong about themselves is not told so where all are welcome.
                return view(request, *args, **kwargs)
            try:
                caller = caller_of(request)
            except exceptions.APIException as exc:
                return _plain(exc.status_code, f"{exc.detail}\n")
            if caller.may(right):
                return view(request, *args, **kwargs)
            if caller is NOBODY:
                return _who_are_you(request)
            raise PermissionDenied(caller.lacks(right))

        guarded.right = right  # type: ignore[attr-defined]
        return guarded

    return wrap


FOR_PROGRAMS = ("/api/", "/metrics")


def _who_are_you(request: HttpRequest) -> HttpResponse:
    from django.contrib.auth.views import redirect_to_login

    if not request.path.startswith(FOR_PROGRAMS) and bearer(request) is None:
        return redirect_to_login(request.get_full_path())
    return _plain(401, f"{refusal_without_token(request)}\n")


def refusal_without_token(request: Any) -> str:
    """Why a request that came without a token that holds is not answered, as a sentence."""
    header = str(request.META.get("HTTP_AUTHORIZATION", ""))
    kind, _, token = header.partition(" ")
    return BAD_TOKEN if kind.lower() == "bearer" and token.strip() else asks_for_token(header)


def _plain(status: int, sentence: str) -> HttpResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return HttpResponse(sentence, status=status, content_type="text/plain", headers=headers)


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
        caller = caller_by_token(request)
        if caller is None:
            header = str(request.META.get("HTTP_AUTHORIZATION", "")).strip()
            if not header or header.partition(" ")[0].lower() in OF_BROWSERS:
                return None
            raise exceptions.AuthenticationFailed(refusal_without_token(request))
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
        if method == "options":
            return True  # which methods there are stands in the schema, which everybody may read
        if method not in answered if answered is not None else not hasattr(view, method):
            refusal = exceptions.MethodNotAllowed(request.method)
            hint = getattr(view, "instead", {}).get(method)
            raise exceptions.MethodNotAllowed(request.method, f"{refusal.detail} {hint}") if hint else refusal
        right = rights.get(getattr(view, "action", None) or ("get" if method == "head" else method))
        if right is None:
            return False
        caller = api_caller(request)
        if not caller.may(right):
            if caller.roles <= NOBODY.roles:
                raise exceptions.NotAuthenticated(refusal_without_token(request))
            raise exceptions.PermissionDenied(caller.lacks(right))
        return True


def api_caller(request: Any) -> Caller:
    """Who makes this request of the REST framework."""
    return request.auth if isinstance(request.auth, Caller) else caller_of_user(request.user)
