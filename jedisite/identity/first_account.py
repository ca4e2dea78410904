"""The first account of an installation: somebody must be able to log in before there is anybody who makes accounts."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import User
from django.db import transaction

from jedisite import audit

FIRST = "demo"
"""Its name: that of the demonstration's user, so that the examples of the documentation hold in every installation."""
BY = "manage.py"


def new_password() -> str:
    return secrets.token_urlsafe(9)


def lines(url: str) -> list[str]:
    """What `manage.py up` prints: the address of the site, a login, and how to get a token.

    The first time, when nobody runs the site yet, an account is made, and its password is in these lines and nowhere else.
    """
    name, password = _operator()
    if not name:
        return [f"The site is at {url}/", "No account can administer the site: manage.py createsuperuser creates one."]
    login = f"password {password}   (shown this once)" if password else ""
    return [
        f"The site is at {url}/",
        f"user {name}   {login}".rstrip(),
        f"new password: manage.py changepassword {name}   token for scripts: manage.py token make {name}",
    ]


@transaction.atomic
def _operator() -> tuple[str, str]:
    """Somebody who may do everything: (name, password), where the password is "" unless the account is new.

    The name is "" when there is nobody, and the name of the first account is somebody else's.
    """
    found = User.objects.filter(is_superuser=True, is_active=True).order_by("id").first()
    if found is not None:
        return found.get_username(), ""
    password = new_password()
    user, is_new = User.objects.get_or_create(username=FIRST, defaults={"is_staff": True, "is_superuser": True})
    if not is_new:
        return "", ""
    user.set_password(password)
    user.save(update_fields=["password"])
    audit.record(BY, "user.make", "user", user.pk, details={"name": FIRST, "rights": "administrator"})
    return FIRST, password
