"""Makes an account with all rights, and records it in the audit trail."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from jedisite.account_commands.recording import recorded


class Command(createsuperuser.Command):
    help = "Create an account with all rights."

    def handle(self, *args: Any, **options: Any) -> None:
        with recorded():
            super().handle(*args, **options)
