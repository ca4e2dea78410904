"""`manage.py token USER`: a token for scripts."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from jedisite.identity import issue_token


class Command(BaseCommand):
    help = "Make a bearer token: of a user, or with --kind pilot of the pilots of a queue. It is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the user, or a name for the pilots' token")
        parser.add_argument("--kind", choices=("user", "pilot", "worker"), default="user")
        parser.add_argument("--queue", default="", help="the queue that a pilot may serve (default: any)")
        parser.add_argument("--days", type=int, default=30, help="how long it is valid (%(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = None
        if options["kind"] == "user":
            user = User.objects.filter(username=options["name"]).first()
            if user is None:
                raise CommandError(
                    f"there is no user {options['name']}; make one with manage.py createsuperuser or in the admin"
                )
        if not 1 <= options["days"] <= 3650:
            raise CommandError("--days must be from 1 to 3650")
        lifetime = timedelta(days=options["days"])
        self.stdout.write(
            issue_token(options["name"], options["kind"], user=user, site=options["queue"], lifetime=lifetime)
        )
