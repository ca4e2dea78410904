"""The file that names the issuers of OIDC tokens this site trusts, one table an organisation (VO). Imports no Django.

[atlas]
issuer = "https://atlas-auth.example/"      # as it stands in tokens, to the letter
audience = ["https://panda.example"]        # a token must be made for one of these; default: the client id
client_id = "..."                           # given to panda-client for its login
client_secret_env = "ATLAS_CLIENT_SECRET"   # the variable that holds the secret; without it, the client has none
roles = ["production", "pilot"]             # what groups of this organisation may be here; default: none
make_users = true                           # whether people get an account when they first come; default: false
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jedisite.vocabulary.roles import Role

ROLE_NAMES: dict[str, Role] = {
    "production": Role.PRODUCTION,
    "shift": Role.SHIFTER,
    "pilot": Role.PILOT,
    "worker": Role.WORKER,
}
"""What a role is called in groups and in the Origin header."""
VO_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Provider:
    """An issuer of tokens and how far it is trusted."""

    vo: str
    issuer: str
    audiences: tuple[str, ...]
    client_id: str
    client_secret: str = ""
    roles: frozenset[Role] = frozenset()
    make_users: bool = False

    @property
    def discovery(self) -> str:
        return self.issuer.rstrip("/") + "/.well-known/openid-configuration"


KEYS: dict[str, tuple[type, str]] = {
    "issuer": (str, "a text"),
    "audience": (list, "a list of texts"),
    "client_id": (str, "a text"),
    "client_secret_env": (str, "the name of an environment variable"),
    "roles": (list, f"a list of {', '.join(ROLE_NAMES)}"),
    "make_users": (bool, "true or false"),
}


def read(path: str) -> dict[str, Provider]:
    """The providers in a file, by VO. Raises ValueError with a sentence that names what is wrong, and where."""
    try:
        tables = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as exc:
        raise ValueError(f"{path} cannot be read: {exc}") from exc
    return {vo: _provider(vo, table) for vo, table in tables.items()}


def _provider(vo: str, table: Any) -> Provider:
    if not VO_NAME.fullmatch(vo) or not isinstance(table, Mapping):
        raise ValueError(f"{vo!r} is no table of a VO: its name is letters, digits, dots, underscores and hyphens")
    for name, value in table.items():
        if name not in KEYS:
            raise ValueError(f"{vo}.{name} is not known; known are {', '.join(KEYS)}")
        kind, words = KEYS[name]
        if not isinstance(value, kind) or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
            raise ValueError(f"{vo}.{name} must be {words}")
    for name in ("issuer", "client_id"):
        if not table.get(name):
            raise ValueError(f"{vo}.{name} is missing")
    if not is_safe(table["issuer"]):
        raise ValueError(f"{vo}.issuer must be an https address")
    unknown = [role for role in table.get("roles", []) if role not in ROLE_NAMES]
    if unknown:
        raise ValueError(f"{vo}.roles: {unknown[0]!r} is none of {', '.join(ROLE_NAMES)}")
    variable = table.get("client_secret_env", "")
    if variable and variable not in os.environ:
        raise ValueError(f"{vo}.client_secret_env: there is no environment variable {variable}")
    return Provider(
        vo=vo,
        issuer=table["issuer"],
        audiences=tuple(table.get("audience") or [table["client_id"]]),
        client_id=table["client_id"],
        client_secret=os.environ[variable] if variable else "",
        roles=frozenset(ROLE_NAMES[role] for role in table.get("roles", [])),
        make_users=table.get("make_users", False),
    )


def is_safe(url: str) -> bool:
    """Whether keys may be fetched from there: over https, or from this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK))
