"""`manage.py submit FILE`: submits a task from a JSON file, without the web server."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from jedisite.identity import caller_of_user
from jedisite.problems import strict_json
from tasks_app import submitting
from tasks_app.moves import CommandRefusedError
from tasks_app.params.schema import ParamErrors


class Command(BaseCommand):
    help = "Submit a task whose parameters stand in a JSON file (- is standard input). Prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--user", required=True, help="the owner of the task, a user of this site")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']}")
        try:
            data = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
            submission = submitting.check(strict_json(data), caller_of_user(user))
            most = settings.JEDI_MOST_ACTIVE_TASKS
            done = submitting.submit(submission, by=user.get_username(), most_active=most)
        except OSError as exc:
            raise CommandError(f"{options['file']} cannot be read: {exc.strerror}") from exc
        except ParamErrors as exc:
            raise CommandError(
                "\n".join(f"{e.field}: {e.message}" if e.field else e.message for e in exc.errors)
            ) from exc
        except (submitting.SubmissionRefusedError, CommandRefusedError) as exc:
            raise CommandError(str(exc)) from exc
        except ValueError as exc:
            raise CommandError(f"{options['file']} is not valid JSON: {exc}") from exc
        if not done.is_new:
            self.stderr.write(done.decision.sentence)
        self.stdout.write(str(done.task_id))
