"""Logins of devices at the development issuer: asked for, confirmed by a person, redeemed once, renewed (RFC 8628)."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import timedelta
from typing import Any

import jwt
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from jedisite import audit
from jedisite.identity import dev_keys
from jedisite.identity.callers import groups_managed_by
from jedisite.identity.oidc_settings import ROLE_NAMES
from jedisite.models import DeviceLogin, ForeignIdentity

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters of user codes: no vowels, so no words."""
WAIT = timedelta(minutes=10)
"""How long a person has to confirm."""
RENEWABLE = timedelta(days=30)
"""How long a login can be renewed without the person; each renewal begins it anew."""
TOKEN_S = 3600
INTERVAL_S = 2
"""Seconds that a device waits between two questions."""
MOST_WAITING = 1000
"""Logins that may wait to be confirmed at the same time: anybody can ask for one."""


Reply = dict[str, Any]
"""What a device is answered: a token with what belongs to it, or `error`, one of the codes of RFC 6749 and 8628."""


def start() -> tuple[str, str] | None:
    """Begin a login: the device's own code, and the code for the person. None when too many wait already."""
    now = timezone.now()
    DeviceLogin.objects.filter(expires__lt=now).delete()
    if DeviceLogin.objects.filter(status="waiting").count() >= MOST_WAITING:
        return None
    code = secrets.token_urlsafe(32)
    letters = "".join(secrets.choice(LETTERS) for _ in range(8))
    user_code = f"{letters[:4]}-{letters[4:]}"
    DeviceLogin.objects.create(user_code=user_code, digest=_digest(code), expires=now + WAIT)
    return code, user_code


def waiting(user_code: str) -> DeviceLogin | None:
    """The login that waits for a person to confirm this code, however it was typed."""
    letters = "".join(c for c in user_code.upper() if c in LETTERS)
    code = f"{letters[:4]}-{letters[4:]}"
    return DeviceLogin.objects.filter(user_code=code, status="waiting", expires__gt=timezone.now()).first()


@transaction.atomic
def decide(row_id: int, user: User, *, allow: bool) -> bool:
    """Let a device in as that user, or turn it away. False when it does not wait any more."""
    row = DeviceLogin.objects.select_for_update().filter(pk=row_id, status="waiting").first()
    if row is None or row.expires <= timezone.now():
        return False
    row.status, row.user = ("allowed" if allow else "refused"), user
    row.save(update_fields=["status", "user"])
    if allow:
        ForeignIdentity.objects.get_or_create(
            issuer=dev_keys.provider().issuer, subject=str(user.pk), defaults={"user": user}
        )
    audit.record(user.get_username(), f"device.{row.status}", "device", row.user_code)
    return True


@transaction.atomic
def redeem(code: str) -> Reply:
    """What the device gets for its code: a token once a person has confirmed, and only once."""
    now = timezone.now()
    row = (
        DeviceLogin.objects.select_for_update(of=("self",)).select_related("user").filter(digest=_digest(code)).first()
    )
    if row is None or row.status == "used":
        return {"error": "invalid_grant"}
    if row.expires <= now:
        return {"error": "expired_token"}
    if row.status == "refused":
        return {"error": "access_denied"}
    if row.status == "waiting":
        early = row.last_asked is not None and now - row.last_asked < timedelta(seconds=INTERVAL_S * 0.9)
        DeviceLogin.objects.filter(pk=row.pk).update(last_asked=now)
        return {"error": "slow_down" if early else "authorization_pending"}
    return _hand_out(row)


@transaction.atomic
def renew(refresh_token: str) -> Reply:
    """A new token for a login that was redeemed. The old refresh token is of no use afterwards."""
    found = DeviceLogin.objects.select_for_update(of=("self",)).select_related("user")
    row = found.filter(refresh_digest=_digest(refresh_token), status="used", expires__gt=timezone.now()).first()
    return _hand_out(row) if row else {"error": "invalid_grant"}


def _hand_out(row: DeviceLogin) -> Reply:
    if row.user is None or not row.user.is_active:
        return {"error": "access_denied"}
    refresh = secrets.token_urlsafe(32)
    row.status, row.refresh_digest, row.expires = "used", _digest(refresh), timezone.now() + RENEWABLE
    row.save(update_fields=["status", "refresh_digest", "expires"])
    token = id_token(row.user)
    kinds = {"id_token": token, "access_token": token, "refresh_token": refresh}
    return {**kinds, "token_type": "Bearer", "expires_in": TOKEN_S}


def id_token(user: User) -> str:
    """A signed token that says who the user is. Roles come from the user's groups here, never from elsewhere."""
    provider, now = dev_keys.provider(), int(time.time())
    claims = {
        "iss": provider.issuer,
        "sub": str(user.pk),
        "aud": provider.client_id,
        "iat": now,
        "exp": now + TOKEN_S,
        "jti": secrets.token_hex(8),
        "name": user.get_full_name() or user.get_username(),
        "preferred_username": user.get_username(),
        "groups": _groups(user, provider.vo),
    }
    headers = {"kid": dev_keys.public_jwk()["kid"]}
    return jwt.encode(claims, dev_keys.private_key(), dev_keys.ALGORITHM, headers=headers)


def _groups(user: User, vo: str) -> list[str]:
    roles = [name for name in user.groups.order_by("name").values_list("name", flat=True) if name in ROLE_NAMES]
    # The manager of a working group that is named like the VO is not thereby a production manager.
    managed = [group for group in groups_managed_by(user) if group != vo]
    return [vo, *(f"{vo}/{role}" for role in roles), *(f"{group}/production" for group in managed)]


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()
