"""The user of a session, read with the names of its groups: every page asks for both, so one statement brings them."""

from __future__ import annotations

from typing import Any, Final, cast

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.http import HttpRequest

from jedisite.identity import throttle

_NAMES: Final = "names_of_groups"


class UsersWithGroups(ModelBackend):
    """Names and passwords as Django keeps them. Read anew at each request: who loses a group loses its rights at once."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> User | None:
        """Raises throttle.TooManyAttempts, before anything is looked at, after too many that failed."""
        address = throttle.address_of(request) if request is not None else ""
        if username is None or password is None or not address:  # not a login over HTTP
            return cast("User | None", super().authenticate(request, username, password, **more))
        throttle.begin_login(username, address)
        user = cast("User | None", super().authenticate(request, username, password, **more))
        if user is not None:
            throttle.succeeded(username, address)
        return user

    def get_user(self, user_id: Any) -> User | None:
        names = ArraySubquery(Group.objects.filter(user=OuterRef("pk")).order_by("name").values("name"))
        user = User.objects.annotate(**{_NAMES: names}).filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


SUPER_USERS, SUPER_GROUP_USERS = "super", "super group"
"""Django's groups of the users whose analysis tasks, and of those whose tasks for a working group, get turns before others:
the letters s and g of PanDA's table of users."""


def special_groups_of(name: str) -> frozenset[str]:
    """Those of the two groups that the account of this name is in. One statement."""
    found = User.objects.filter(username=name, is_active=True, groups__name__in=[SUPER_USERS, SUPER_GROUP_USERS])
    return frozenset(found.values_list("groups__name", flat=True))


def groups_of(user: User) -> list[str]:
    """Names of the groups of a user in their order: no statement for the user of a session, one for any other."""
    known: list[str] | None = getattr(user, _NAMES, None)
    return list(user.groups.order_by("name").values_list("name", flat=True)) if known is None else known
