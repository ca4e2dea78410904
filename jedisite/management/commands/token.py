"""`manage.py token`: tokens for scripts, pilots and workers."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from jedisite import audit
from jedisite.identity import token_sites, tokens, user_names
from jedisite.identity.callers import issue_token, row_of_token
from jedisite.identity.token_pages import state_of
from jedisite.management.command_line import Parser, Suggesting
from jedisite.models import ApiToken
from jedisite.vocabulary.roles import SCOPE_WORDS, Scope
from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line

BY = "manage.py"
LONGEST_DAYS = 3650


class Command(Suggesting):
    help = (
        "Make, list and revoke bearer tokens. A new token is printed on a line of its own, and cannot be shown again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(
            parser_class=Parser, dest="action", required=True, metavar="make|pilot|worker|list|revoke"
        )
        make = actions.add_parser("make", help="a token for the scripts of a user")
        make.add_argument("user")
        make.add_argument(
            "--new-account", action="store_true", help="also make the account: an ordinary one, without a password"
        )
        scopes = "; ".join(f"{scope.value}: {words}" for scope, words in SCOPE_WORDS.items())
        make.add_argument("--scope", choices=[s.value for s in Scope], default="all", help=f"{scopes} (%(default)s)")
        make.add_argument("--name", default="made by manage.py", help="what it is for (%(default)s)")
        pilot = actions.add_parser("pilot", help="a token that fetches jobs and reports on them")
        pilot.add_argument("--site", default="", help="the queue that the pilots may serve (default: any)")
        pilot.add_argument("--name", default="pilots", help="what it is for (%(default)s)")
        worker = actions.add_parser("worker", help="a token for a service that starts pilots")
        worker.add_argument("--name", default="workers", help="what it is for (%(default)s)")
        for made in (make, pilot, worker):
            made.add_argument("--days", type=int, default=tokens.USUAL_DAYS, help="how long it is valid (%(default)s)")
            made.add_argument(
                "--file", type=Path, help="write the token to this file, readable only by you, instead of printing it"
            )
        listed = actions.add_parser("list", help="list tokens")
        listed.add_argument("user", nargs="?", help="only tokens of this user")
        listed.add_argument("--all", action="store_true", help="also expired and revoked tokens")
        revoked = actions.add_parser("revoke", help="revoke tokens")
        revoked.add_argument("id", nargs="+", type=_number, metavar="NUMBER", help="numbers of the tokens, as listed")

    def handle(self, *args: Any, **options: Any) -> None:
        action = options["action"]
        if action == "list":
            self._list(options["user"], everything=options["all"])
        elif action == "revoke":
            self._revoke(options["id"])
        else:
            if not 1 <= options["days"] <= LONGEST_DAYS:
                raise CommandError(f"--days must be from 1 to {LONGEST_DAYS}")
            if not 1 <= len(options["name"]) <= ApiToken.LONGEST_NAME:
                raise CommandError(f"--name has 1 to {ApiToken.LONGEST_NAME} characters")
            if not is_one_line(options["name"]):
                raise CommandError(f"--name: {options['name']!r} {NOT_ONE_LINE}")
            self._make(action, options)

    @transaction.atomic
    def _make(self, action: str, options: dict[str, Any]) -> None:
        """Make a token and hand it over. There is none when it cannot be written."""
        token = self._of_user(options) if action == "make" else self._of_program(action, options)
        if options["file"] is None:
            self.stdout.write(token)
        else:
            _write(options["file"], token)

    def _of_user(self, options: dict[str, Any]) -> str:
        if options["new_account"]:
            _make_account(options["user"])
        try:
            token, _ = tokens.make(
                options["user"], options["name"], days=options["days"], scope=Scope(options["scope"]), by=BY
            )
        except tokens.NotAPersonError as exc:
            user = options["user"]
            near = user_names.meant(user)
            makes = f".{near} --new-account makes the account {user}" if near else "; --new-account makes one"
            raise CommandError(f"there is no active user {user}{makes}") from exc
        except tokens.NoTokenError as exc:
            raise CommandError(f"{options['user']} has {tokens.MOST_TOKENS} valid tokens; revoke one first") from exc
        return token

    def _of_program(self, kind: str, options: dict[str, Any]) -> str:
        site = options.get("site", "")
        if len(site) > ApiToken.LONGEST_SITE:
            raise CommandError(f"--site has at most {ApiToken.LONGEST_SITE} characters")
        if fault := token_sites.site_fault(site):
            raise CommandError(f"--site: {fault}")
        token = issue_token(options["name"], kind, site=site, lifetime=timedelta(days=options["days"]))
        row = row_of_token(token)
        assert row is not None
        audit.record(BY, "token.make", "token", row.id, details={"kind": kind, "site": row.site, "name": row.name})
        return token

    def _list(self, user: str | None, *, everything: bool) -> None:
        if user and not get_user_model().objects.filter(username=user).exists():
            raise CommandError(f"there is no user {user}.{user_names.meant(user)}")
        rows = ApiToken.objects.select_related("user").order_by("id")
        for row in rows.filter(user__username=user) if user else rows:
            state = state_of(row)
            if everything or state == "valid":
                whose = row.user.get_username() if row.user else row.site or "any site"
                line = f"{row.id:>6}  {row.kind:<6}  {whose}  {row.scope}  {row.prefix}…  {state}"
                self.stdout.write(f"{line}  until {row.expires:%Y-%m-%d %H:%M} UTC  {row.name}")

    def _revoke(self, numbers: list[int]) -> None:
        rows = ApiToken.objects.in_bulk(numbers)
        missing = [str(number) for number in numbers if number not in rows]
        if missing:
            raise CommandError(f"there is no token {', '.join(missing)}; nothing was revoked")
        with transaction.atomic():
            for row in rows.values():
                tokens.revoke(row, by=BY)


def _make_account(name: str) -> None:
    people = get_user_model()
    account = people(username=name)
    account.set_unusable_password()
    try:
        account.full_clean()
    except ValidationError as exc:
        raise CommandError(f"no account {name} was made: {' '.join(exc.messages)}") from exc
    account.save()
    audit.record(BY, "account.make", "user", account.pk, details={"name": name})


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text[:60]!r} is not the number of a token; `token list` shows the numbers")
    return int(text)


def _write(path: Path, token: str) -> None:
    """Put the token there, and nothing else: clients read the file to its last byte."""
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
            draft.write(token)
        os.replace(draft.name, path)
    except OSError as exc:
        raise CommandError(f"{path} cannot be written: {exc.strerror}") from exc
