"""Gives an account a new password, and records it in the audit trail."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import changepassword

from jedisite.account_commands.recording import recorded


class Command(changepassword.Command):
    help = "Give an account a new password."

    def handle(self, *args: Any, **options: Any) -> str | None:
        with recorded():
            return super().handle(*args, **options)
