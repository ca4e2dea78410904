"""The data folder of the embedded PostgreSQL: where it lies, how it is made, and which version may run on it. No Django."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from jedisite.processes.children import die_with_parent
from jedisite.processes.postgres_binaries import (
    Account,
    PostgresError,
    major_of,
    make_folder,
    reachable,
    system_binaries,
)
from jedisite.processes.postgres_state import State, StateFolder

USER = "jedi"
"""The superuser of the server, whom `initdb` makes."""
DATA_ELSEWHERE = Path("/var/lib/jedisite")
LOG_TAIL_LINES = 15


def place_of_data(folder: StateFolder, account: Account, elsewhere: Path, say: Callable[[str], None]) -> Path:
    """Where a new server's data go; what lies there from an earlier home is put aside, and `say` gets a sentence on that."""
    if reachable(folder.path, account):
        data = folder.path / "data"
    else:
        make_folder(elsewhere, 0o711)
        data = elsewhere / hashlib.sha256(os.fsencode(folder.home)).hexdigest()[:16]
    if data.exists():
        aside = data.with_name(f"{data.name}.old-{secrets.token_hex(4)}")
        data.rename(aside)
        say(f"{data} was left by an earlier home at this place and its password is gone; it is now {aside}")
    return data


def make_data(state: State, folder: StateFolder, binaries: Path, account: Account, *, sync: bool) -> None:
    """Make the data folder, complete or not at all. Without `sync` a crash of the machine may lose it."""
    if state.port:
        raise PostgresError(
            f"The data folder {state.data} is gone. Bring it back, or remove {folder.path} to begin anew."
        )
    fresh, password = Path(f"{state.data}.new"), Path(f"{state.data}.password")
    if fresh.exists():  # a start that was killed left it
        shutil.rmtree(fresh)
    password.unlink(missing_ok=True)
    make_folder(fresh, 0o700)
    try:
        with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(state.password)
        if account.uid is not None and account.gid is not None:
            os.chown(fresh, account.uid, account.gid)
            os.chown(password, account.uid, account.gid)
        _initdb(binaries, fresh, password, account, sync=sync)
    finally:
        password.unlink(missing_ok=True)
    fresh.rename(state.data)


def _initdb(binaries: Path, data: Path, password: Path, account: Account, *, sync: bool) -> None:
    command = [str(binaries / "initdb"), f"--pgdata={data}", f"--username={USER}", f"--pwfile={password}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums"]
    if not sync:
        command.append("--no-sync")
    done = subprocess.run(
        command,
        cwd="/",
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
        user=account.uid,
        group=account.gid,
        extra_groups=account.extra_groups,
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-LOG_TAIL_LINES:])
        raise PostgresError(f"initdb ended with code {done.returncode}:\n{tail}")


def check_version(data: Path, binaries: Path) -> None:
    """Raises PostgresError, with what to do, when another major version made the data."""
    made_by, found = int((data / "PG_VERSION").read_text()), major_of(binaries)
    if made_by == found:
        return
    others = [str(folder) for folder in system_binaries() if major_of(folder) == made_by]
    raise PostgresError(
        f"The data in {data} was made by PostgreSQL {made_by}, and {binaries} is PostgreSQL {found}. Set "
        f"JEDI_POSTGRES_BIN to the bin folder of PostgreSQL {made_by}{f' ({others[0]})' if others else ''}; "
        f"to change over, save the database with its pg_dump, start PostgreSQL {found} with another JEDI_HOME and "
        "restore it there."
    )


def clean_env() -> dict[str, str]:
    """Our environment without what would steer PostgreSQL behind our back, such as PGDATA and PGPORT."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
