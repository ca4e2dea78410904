"""The archives with users' code that this site keeps for its jobs. They are kept as they are, never unpacked here."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http.request import validate_host

from tasks_app.generating.buildstep import archive_of

LIMIT_BYTES = 768 * 1024 * 1024
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class SandboxRefusedError(ValueError):
    """The archive is not kept; the sentence says why."""


def keep(source: Path, prefix: str = "sources") -> str:
    """Keep a copy of an archive. Returns its name, which nobody can guess. Raises SandboxRefusedError, OSError."""
    size = source.stat().st_size
    if size > LIMIT_BYTES:
        raise SandboxRefusedError(f"the sandbox has {size} bytes, {LIMIT_BYTES} are allowed")
    name = f"{prefix}.{uuid.uuid4()}.tar.gz"
    settings.JEDI_SANDBOXES.mkdir(parents=True, exist_ok=True)
    part = settings.JEDI_SANDBOXES / f".{name}.part"
    shutil.copyfile(source, part)
    part.rename(settings.JEDI_SANDBOXES / name)
    return name


def path_of(name: str) -> Path | None:
    """Where a sandbox lies; None when there is none of that name."""
    path = settings.JEDI_SANDBOXES / name
    return path if NAME.fullmatch(name) and path.is_file() else None


def lacking(raw: Mapping[str, Any], command_line: str) -> str:
    """Why the jobs of a task cannot get its sandbox; empty when they can, or when another server keeps it.

    A sandbox that is used is marked as such, so that cleaning leaves it.
    """
    name, url = archive_of(raw, command_line), urlsplit(str(raw.get("sourceURL") or ""))
    if name is None:
        return ""
    if url.scheme == "file":
        path: Path | None = Path(unquote(url.path)) / os.path.basename(name)
        path = path if path is not None and path.is_file() else None
    elif url.hostname and validate_host(url.hostname, settings.ALLOWED_HOSTS):
        path = path_of(name)
    else:
        return ""
    if path is None:
        return f"user sandbox file unavailable: {name} is not kept at {raw['sourceURL']}"
    if url.scheme != "file":
        os.utime(path)
    return ""
