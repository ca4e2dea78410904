"""Bearer tokens of other issuers (OIDC): which are accepted, and what they state about their bearer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
from django.conf import settings
from rest_framework.exceptions import APIException, AuthenticationFailed, PermissionDenied

from jedisite.identity import dev_keys
from jedisite.identity.oidc_keys import IssuerSilentError, SigningKey, UnknownKeyError, key_of
from jedisite.identity.oidc_settings import ROLE_NAMES, Provider
from jedisite.vocabulary.roles import Role

LEEWAY_S = 60
"""Seconds by which the clocks of an issuer and of this site may differ."""
LONGEST_TOKEN = 16_384
LAST_MOMENT = 253_402_300_799
"""The end of the year 9999."""


class IssuerSilent(APIException):
    """A token cannot be checked, because its issuer does not answer."""

    status_code = 503
    default_detail = "The issuer of the token does not answer; try again in a moment."


@dataclass(frozen=True, slots=True)
class Vouched:
    """What a token that holds says: which provider vouches for whom, in which role (None is a plain user)."""

    provider: Provider
    claims: Mapping[str, Any]
    role: Role | None

    @property
    def subject(self) -> str:
        return str(self.claims["sub"])


def providers() -> dict[str, Provider]:
    """The providers that are trusted, by VO."""
    found: dict[str, Provider] = settings.JEDI_OIDC
    return {**found, settings.JEDI_DEV_ISSUER: dev_keys.provider()} if dev_keys.is_on() else found


def provider_and_role(origin: str) -> tuple[Provider, str] | None:
    """What an Origin header such as atlas, atlas.pilot or atlas:production names; None when the VO is not known."""
    known = providers()
    if origin in known:
        return known[origin], ""
    for mark in (":", "."):
        vo, _, role = origin.rpartition(mark)
        if role and vo in known:
            return known[vo], role
    return None


def check(token: str, origin: str) -> Vouched:
    """Check a token that came with this Origin header ("" without one). May ask the network: not for transactions.

    Raises AuthenticationFailed (the token does not hold), PermissionDenied (it does not give the role that is asked for)
    and IssuerSilent, each with a sentence for the caller.
    """
    header, claims = _unchecked(token)
    # A web page's origin is an address and says nothing about VOs.
    named = origin if "://" not in origin and origin != "null" else ""
    if named:
        found = provider_and_role(named)
        if found is None:
            raise AuthenticationFailed(f"The VO {named[:100]!r} of the Origin header is not configured at this site.")
    else:
        found = _by_issuer(claims.get("iss"))
    provider, role = found
    key = _key(provider, header)
    return Vouched(provider, claims := _verified(token, key, provider), _role(provider, role, claims))


def end_of(token: str) -> datetime:
    """When a token ends that was checked before."""
    _, claims = _unchecked(token)
    return datetime.fromtimestamp(min(int(claims["exp"]), LAST_MOMENT), UTC)


def _unchecked(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Header and claims of what may be a token; nothing in them is true yet."""
    if len(token) > LONGEST_TOKEN:
        raise AuthenticationFailed(f"The token is longer than {LONGEST_TOKEN} characters.")
    try:
        read = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError) as exc:
        raise AuthenticationFailed("The token is unknown, expired or revoked.") from exc
    return read["header"], read["payload"]


def _by_issuer(issuer: Any) -> tuple[Provider, str]:
    found = [provider for provider in providers().values() if provider.issuer == issuer]
    if len(found) != 1:
        raise AuthenticationFailed("The Origin header must name the VO of the token.")
    return found[0], ""


def _key(provider: Provider, header: Mapping[str, Any]) -> SigningKey:
    kid = header.get("kid", "")
    if not isinstance(kid, str):
        raise AuthenticationFailed("The token names no key.")
    try:
        return dev_keys.key_of(kid) if provider == dev_keys.provider() else key_of(provider, kid)
    except UnknownKeyError as exc:
        raise AuthenticationFailed("The token is signed with a key that its issuer does not have.") from exc
    except IssuerSilentError as exc:
        raise IssuerSilent from exc


def _verified(token: str, key: SigningKey, provider: Provider) -> Mapping[str, Any]:
    required = ["exp", "iat", "iss", "aud", "sub"]
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=key.algorithms,
            audience=provider.audiences,
            issuer=provider.issuer,
            leeway=LEEWAY_S,
            options={"require": required, "enforce_minimum_key_length": True},
        )
    except jwt.PyJWTError as exc:
        raise AuthenticationFailed(_sentence(exc)) from exc
    except (ValueError, TypeError, OverflowError) as exc:
        raise AuthenticationFailed("The token is malformed.") from exc
    return claims


SENTENCES: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "The token has expired."),
    (jwt.ImmatureSignatureError, "The token is not valid yet."),
    (jwt.InvalidAudienceError, "The token was made for another audience."),
    (jwt.InvalidIssuerError, "The token comes from an issuer other than that of the VO."),
    (jwt.InvalidAlgorithmError, "The token is signed with an algorithm that is not accepted."),
    (jwt.InvalidSignatureError, "The signature of the token is wrong."),
)


def _sentence(exc: jwt.PyJWTError) -> str:
    if isinstance(exc, jwt.MissingRequiredClaimError):
        return f"The token has no {exc.claim}."
    return next((words for kind, words in SENTENCES if isinstance(exc, kind)), "The token is malformed.")


def groups_of(claims: Mapping[str, Any]) -> list[str]:
    """The groups in a token, without the slash that some issuers begin them with."""
    found = claims.get("groups") or claims.get("wlcg.groups") or []
    return [one.removeprefix("/") for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _role(provider: Provider, name: str, claims: Mapping[str, Any]) -> Role | None:
    """The role that was asked for. Raises PermissionDenied unless token and provider both give it."""
    if not name:
        return None
    role = ROLE_NAMES.get(name)
    if role is None:
        raise PermissionDenied(f"There is no role {name[:100]!r} here; there are {', '.join(ROLE_NAMES)}.")
    if f"{provider.vo}/{name}" not in groups_of(claims):
        raise PermissionDenied(f"The token does not list its owner as a member of {provider.vo}/{name}.")
    if role not in provider.roles:
        raise PermissionDenied(f"Members of {provider.vo} get no role {name} at this site.")
    return role
