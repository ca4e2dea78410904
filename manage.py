#!/usr/bin/env python3
"""The program of the site: `manage.py help` lists what it can do.

Without DATABASE_URL, the embedded PostgreSQL of JEDI_HOME is started, or joined, for commands that need a database.
"""

import os
import sys
from pathlib import Path

WITHOUT_DATABASE = {
    "help",
    "version",
    "pilot",
    "bench",
    "map",
    "jobs",
    "collectstatic",
    "makemessages",
    "compilemessages",
}
ONLY_HELP = {"-h", "--help", "--version"}
LIGHT = {"pilot"}
"""Commands that use neither the database nor the agents: they start in half the time without these."""


def needs_database(arguments: list[str]) -> bool:
    """Whether a command line (without the program's name) is for a command that uses the database."""
    if arguments[:1] == ["bench"] and "pages" in arguments and not ONLY_HELP.intersection(arguments):
        # Measured on the database that is there, unless one is to be filled.
        return not any(argument.startswith(("--tasks", "--jobs", "--files")) for argument in arguments)
    return bool(arguments) and arguments[0] not in WITHOUT_DATABASE and not ONLY_HELP.intersection(arguments)


def is_light(arguments: list[str]) -> bool:
    """Whether a command needs neither database nor agents, or only asks what there is: of all commands, or of one of ours."""
    if arguments[:1] and arguments[0] in LIGHT:
        return True
    if not ONLY_HELP.intersection(arguments):
        return False
    return arguments[0] in ONLY_HELP or is_ours(arguments[0])


def is_ours(command: str) -> bool:
    """Whether a command is this site's, and none of Django's or of a library's."""
    return any(Path(__file__).resolve().parent.glob(f"*/management/commands/{command}.py"))


def _refuse_unreadable(arguments: list[str], home: Path) -> None:
    """End here when the words cannot be read and the command would make a home first: none is made for a misspelt option."""
    from jedisite.processes import one_site

    makes = arguments[:1] and (arguments[0] in one_site.COMMANDS or (needs_database(arguments) and not _has_database()))
    if makes and is_ours(arguments[0]) and not ONLY_HELP.intersection(arguments) and one_site.is_new(home):
        from jedisite.management.command_line import REFUSED, refusal

        if said := refusal(arguments):
            sys.stderr.write(said)
            sys.exit(REFUSED)


def _has_database() -> bool:
    return bool(os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE"))


def _one_site(arguments: list[str], home: Path) -> None:
    """Take the home for a command that runs a whole site; before the database, which may be ending with the former one.

    A new home is not made for a command that would be refused.
    """
    from jedisite.processes import one_site

    if arguments[:1] and arguments[0] in one_site.COMMANDS and not ONLY_HELP.intersection(arguments):
        from jedisite.processes import launch

        try:
            if one_site.is_new(home):
                launch.check_arguments(arguments[1:])
            one_site.hold(home)
        except (one_site.RunsAlreadyError, launch.LaunchError) as exc:
            sys.exit(str(exc))
    elif arguments[:1] and arguments[0] in one_site.CALLERS and (address := one_site.address(home)):
        os.environ.setdefault("JEDI_SERVER_URL", address)


def main() -> None:
    from jedisite.processes import garbage

    garbage.put_off()  # until the apps are ready
    light = is_light(sys.argv[1:])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "jedisite.light_settings" if light else "jedisite.settings")
    home = Path(os.environ.get("JEDI_HOME") or Path(__file__).resolve().parent / ".jedisite").resolve()
    os.environ["JEDI_HOME"] = str(home)
    _refuse_unreadable(sys.argv[1:], home)
    _one_site(sys.argv[1:], home)
    server = None
    if needs_database(sys.argv[1:]) and not _has_database():
        from jedisite.processes import postgres

        try:
            server = postgres.ensure(home)
        except postgres.PostgresError as exc:
            sys.exit(str(exc))
        if server is not None:
            os.environ["DATABASE_URL"] = server.url
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as exc:
        sys.exit(str(exc))
    except Exception as exc:
        from jedisite.database.database_faults import said_to_operator

        if "--traceback" in sys.argv or (said := said_to_operator(exc, own=server is not None)) is None:
            raise
        sys.exit(said)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # Ctrl-C before the command listens to it
        sys.exit(130)
