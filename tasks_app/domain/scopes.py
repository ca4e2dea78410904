"""Scopes of datasets, and who may make datasets in them: one table for the whole site. Pure.

A scope belongs to a user (`user.ada`), to a working group (`group.phys-higgs`) or to productions (`mc23_13p6TeV`,
`data25`, `valid1`, and every other). Names count to the letter: `User.ada` is no user's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

UNMERGED: Final = "panda.um"
"""Begins the names of what jobs write first when a task merges its outputs."""
LONGEST: Final = 30
"""Characters of a scope."""
CONTAINER_MARK: Final = "/"
"""Names of containers end with it."""


class Realm(StrEnum):
    """Whose a scope is."""

    USER = "user"
    GROUP = "group"
    PRODUCTION = "production"


WRITERS: Final[Mapping[Realm, str]] = MappingProxyType(
    {
        Realm.USER: "that user, and production on their behalf (userName),",
        Realm.GROUP: "managers of the group, and production,",
        Realm.PRODUCTION: "production",
    }
)
"""Who may make datasets in the scopes of each realm, for people. `production` is the right to command any task."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who is to make datasets: the owner of a task, the working groups that its submitter manages, and whether the
    submitter has the production right."""

    user: str
    groups: frozenset[str] = frozenset()
    production: bool = False

    @property
    def names(self) -> str:
        """The names of datasets that the writer may make, for people."""
        if self.production:
            return f"user.{self.user}.* and every name outside user.*"
        return ", ".join([f"user.{self.user}.*", *(f"group.{name}.*" for name in sorted(self.groups))])


def scope_of(dataset: str, owner: str = "") -> str:
    """The scope of a dataset's files: before a colon, a user's or group's first two fields, or the first field.

    `owner` says where the name of a user ends that has dots. Files that wait to be merged are in the scope of what they
    are merged into. A file is known by scope and name alone, so no two users share a scope.
    """
    name = dataset.removeprefix(f"{UNMERGED}.").rstrip("/")
    before, colon, _ = name.partition(":")
    if colon:
        return _short(before)
    if owner and name.startswith(f"{Realm.USER}.{owner}."):
        return scope_of_user(owner)
    fields = name.split(".")
    if fields[0] in (Realm.USER, Realm.GROUP) and len(fields) > 1:
        return _short(".".join(fields[:2]))
    return _short(fields[0]) or "user"


def without_scope(name: str) -> str:
    """The name of a dataset that is written with its scope before a colon; "" for any other.

    >>> without_scope("user.ada:user.ada.x"), without_scope("user.bob:user.ada.x"), without_scope("user.ada.x")
    ('user.ada.x', '', '')
    """
    scope, colon, bare = name.partition(":")
    is_below = scope.startswith(f"{Realm.USER}.") and bare.startswith(f"{scope}.")  # the account's name may have dots
    return bare if colon and ":" not in bare and (is_below or scope == scope_of(bare)) else ""


def scope_of_user(user: str) -> str:
    return _short(f"{Realm.USER}.{user}")


def _short(scope: str) -> str:
    """A scope that fits into the columns; two that begin alike stay two."""
    if len(scope) <= LONGEST:
        return scope
    mark = hashlib.sha256(scope.encode()).hexdigest()[:8]
    return f"{scope[: LONGEST - len(mark) - 1]}_{mark}"


def realm_of(name: str) -> Realm:
    """Whose the scope of a dataset name is."""
    first = name.partition(":")[2].partition(".")[0] if ":" in name else name.rstrip("/").partition(".")[0]
    return Realm(first) if first in (Realm.USER, Realm.GROUP) else Realm.PRODUCTION


def refusal(name: str, writer: Writer) -> str | None:
    """Why the writer may not make a dataset or container of this name; None when they may."""
    scope, colon, rest = name.partition(":")
    bare = rest if colon else name
    realm = realm_of(name)
    if ":" in bare or (colon and scope != scope_of(bare, writer.user)):
        return f"{name}: the scope before the colon differs from that of the name after it."
    if _owns(bare, realm, writer):
        return None
    return f"{name} is in {_WHOSE[realm]}, where only {WRITERS[realm]} may make datasets. You may use {writer.names}."


_WHOSE: Final = {
    Realm.USER: "the scope of a user",
    Realm.GROUP: "the scope of a working group",
    Realm.PRODUCTION: "a scope of productions",
}


def _owns(bare: str, realm: Realm, writer: Writer) -> bool:
    if realm is Realm.USER:
        return _is_below(bare, f"{Realm.USER}.{writer.user}.")
    if realm is Realm.GROUP and not writer.production:
        return any(_is_below(bare, f"{Realm.GROUP}.{group}.") for group in writer.groups)
    return writer.production


def _is_below(bare: str, prefix: str) -> bool:
    """Whether a name says more than the scope alone."""
    return bare.startswith(prefix) and bool(bare.removeprefix(prefix).strip("./"))


def longer_accounts(name: str, user: str) -> tuple[str, ...]:
    """Longer names of accounts which the name of a user's dataset begins with as well: `ada.b` for user.ada.b.hits.

    Such a name is that other account's, if there is one.
    """
    bare = name.rpartition(":")[2].rstrip("/")
    rest = bare.removeprefix(f"{Realm.USER}.{user}.")
    if rest == bare:
        return ()
    fields = rest.split(".")
    return tuple(".".join([user, *fields[:count]]) for count in range(1, len(fields)))
