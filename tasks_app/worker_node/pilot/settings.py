"""What a pilot is told when it starts: the command line and two environment variables."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tasks_app.worker_node.pilot.walls import Walls, find

ISOLATIONS = ("auto", "none")
TOKEN_VARIABLE = "JEDI_PILOT_TOKEN"
SERVER_VARIABLE = "JEDI_SERVER_URL"


class SettingsError(ValueError):
    """A setting is missing or senseless; the text says which."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`max_jobs` 0: no limit. `idle_exit_s` None: wait for work for ever. `memory_mb` 0: the slot's memory is not set.

    `walls` None: payloads run without. `unwalled` says why there are none though there should be: then only jobs of the
    site's administrators are fetched.
    `hidden`: folders that no payload sees, and of which only what lies in a storage is an input.
    `label` empty: any kind of job. `patience_s`: how long a call is tried again while the server does not answer.
    """

    server: str
    queue: str
    token: str = field(repr=False)
    work: Path
    label: str = ""
    heartbeat_s: float = 30.0
    max_jobs: int = 0
    idle_exit_s: float | None = None
    memory_mb: int = 0
    keep: bool = False
    worker_id: int = 0
    node: str = ""
    patience_s: float = 7200.0
    walls: Walls | None = None
    unwalled: str = ""
    token_file: str = ""
    hidden: tuple[str, ...] = ()

    def token_now(self) -> str:
        """The token in its file, which is written anew before the token ends; the first one if there is no file."""
        with contextlib.suppress(OSError):
            return Path(self.token_file).read_text().strip() or self.token if self.token_file else self.token
        return self.token

    def __post_init__(self) -> None:
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"the server must be an http or https address, not {self.server!r}")
        if not self.queue:
            raise SettingsError("the name of a queue is needed (--queue)")
        if not self.token:
            raise SettingsError(f"the pilot's token is needed in the environment variable {TOKEN_VARIABLE}")
        if not all("!" <= sign <= "~" for sign in self.token):
            # Sent in a header, it would be refused with a sentence that shows it.
            raise SettingsError(
                f"{TOKEN_VARIABLE} contains a space, a line break or another character that tokens cannot have"
            )
        if self.heartbeat_s <= 0:
            raise SettingsError(f"the period of heartbeats must be above 0 s, not {self.heartbeat_s:g} s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The pilot's options, for `python -m tasks_app.worker_node.pilot` and for `manage.py pilot`."""
    parser.add_argument("--queue", required=True, help="queue to work for")
    parser.add_argument("--server", default="", help=f"address of the site (default: ${SERVER_VARIABLE})")
    parser.add_argument("--label", default="", help="only jobs of this prodSourceLabel (default: any)")
    parser.add_argument("--heartbeat", type=float, default=30.0, metavar="S", help="seconds between heartbeats (30)")
    parser.add_argument("--max-jobs", type=int, default=0, metavar="N", help="end after N jobs (default: no limit)")
    parser.add_argument(
        "--idle-exit", type=float, metavar="S", help="end after S seconds without work (default: never)"
    )
    parser.add_argument("--work", type=Path, default=Path("pilot-work"), help="folder for the jobs' work folders")
    parser.add_argument("--memory", type=int, default=0, metavar="MB", help="memory of the slot (default: not set)")
    parser.add_argument("--keep", action="store_true", help="keep the work folders of finished jobs")
    parser.add_argument(
        "--worker-id", type=int, default=0, metavar="ID", help="number that the submitter gave this pilot"
    )
    parser.add_argument(
        "--isolation",
        choices=ISOLATIONS,
        default="auto",
        help="auto: payloads run isolated, and where that is impossible only those of the site's administrators run; "
        "none: all run without isolation (default: auto)",
    )
    parser.add_argument("--network", action="store_true", help="isolated payloads get the network of this machine")
    parser.add_argument(
        "--readable",
        action="append",
        default=[],
        metavar="FOLDER",
        help="isolated payloads can also read this folder; may be repeated",
    )
    parser.add_argument(
        "--hidden", action="append", default=[], metavar="FOLDER", help="isolated payloads cannot read it"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=7200.0,
        metavar="S",
        help="seconds for which calls are retried while the server does not answer (7200)",
    )


def token_in(environ: Mapping[str, str]) -> str:
    """The pilots' token, from the file that `<variable>_FILE` names or the variable; "" without. Raises SettingsError."""
    if path := environ.get(f"{TOKEN_VARIABLE}_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as exc:
            raise SettingsError(f"the pilot's token cannot be read: {path}: {exc.strerror}") from exc
    return environ.get(TOKEN_VARIABLE, "").strip()


def from_arguments(options: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Settings:
    """Raises SettingsError."""
    walls: Walls | str | None = None
    if options.isolation == "auto":
        walls = find(readable=options.readable, hidden=options.hidden, network=options.network)
    return Settings(
        server=(options.server or environ.get(SERVER_VARIABLE, "")).rstrip("/"),
        queue=options.queue,
        token=token_in(environ),
        work=options.work.absolute(),
        label=options.label,
        heartbeat_s=options.heartbeat,
        max_jobs=options.max_jobs,
        idle_exit_s=options.idle_exit,
        memory_mb=options.memory,
        keep=options.keep,
        worker_id=options.worker_id,
        node=socket.gethostname(),
        patience_s=options.patience,
        walls=None if isinstance(walls, str) else walls,
        hidden=tuple(options.hidden),
        token_file=environ.get(f"{TOKEN_VARIABLE}_FILE", ""),
        unwalled=walls if isinstance(walls, str) else "",
    )
