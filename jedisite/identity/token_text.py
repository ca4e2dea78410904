"""What an API token looks like.

Tokens of pilots and workers are opaque. Those of users have the shape of a JWT, because panda-client reads who it works
for from the second part. Nobody checks the parts of such a token: the whole of it is hashed and looked up.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

MARK = "jedi_"
"""Begins the secret, so that people and scanners of leaked secrets know what they see."""
SHOWN = 12
"""Characters of the secret that are kept, to tell tokens apart."""
HEADER = {"typ": "JWT", "alg": "jedi-opaque"}
"""Names no algorithm of signatures: a verifier can only refuse it."""


def opaque() -> str:
    """A new token of a pilot or a worker."""
    return MARK + secrets.token_urlsafe(32)


def of_user(user: User, manages: list[str], expires: datetime) -> str:
    """A new token of a user: header, claims, secret. `manages`: the working groups whose tasks the user may command.

    The claims are for clients to read and give no right: panda-client takes its nickname from `preferred_username`, and
    the groups of --official from `groups`.
    """
    claims = {
        "iss": settings.JEDI_SERVER_URL or "jedisite",
        "sub": str(user.pk),
        "name": user.get_full_name() or user.get_username(),
        "preferred_username": user.get_username(),
        "groups": [f"{group}/production" for group in manages],
        "exp": int(expires.timestamp()),
    }
    return f"{_part(HEADER)}.{_part(claims)}.{opaque()}"


def is_ours(token: str) -> bool:
    """Whether this is a token that this site may have made."""
    return token.rpartition(".")[2].startswith(MARK)


def shown(token: str) -> str:
    """The first letters of the secret."""
    return token.rpartition(".")[2][:SHOWN]


def _part(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
