"""What a command of Django's changes on accounts is entered in the audit trail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db.models.signals import post_save

from jedisite import audit
from jedisite.identity.first_account import BY


@contextmanager
def recorded() -> Iterator[None]:
    """Each account that is saved meanwhile: made, or given another password."""

    def note(instance: User, created: bool, **_: Any) -> None:
        details = {"name": instance.get_username()}
        if created and instance.is_superuser:
            details["rights"] = "administrator"
        audit.record(BY, "user.make" if created else "user.password", "user", instance.pk, details=details)

    post_save.connect(note, sender=User, weak=False)
    try:
        yield
    finally:
        post_save.disconnect(note, sender=User)
