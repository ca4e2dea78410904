"""Archives with users' code on their way in: checked as they arrive, within the owner's quota, and kept when they are whole."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Sum

from jedisite.server.places import Places
from jedisite.vocabulary.words import thousands
from tasks_app.models import Sandbox
from tasks_app.params.buildstep import OVERWRITABLE
from tasks_app.submission.gzip_check import BadGzipError, GzipCheck
from tasks_app.submission.sandboxes import NAME, unlink_after_commit, used

LIMIT_BYTES = 768 * 1024 * 1024
MB = 1_000_000
PART = ".part"


class SandboxRefusedError(ValueError):
    """The archive is not kept; the sentence says why."""


class TooManyLargeError(SandboxRefusedError):
    def __init__(
        self, sentence: str = "several large sandboxes are being checked: upload it again in a minute"
    ) -> None:
        super().__init__(sentence)


class OwnLargeError(TooManyLargeError):
    def __init__(self) -> None:
        super().__init__("another large sandbox of yours is being checked: upload this one again when that is done")


LARGE: Final = Places(2, 1, TooManyLargeError, OwnLargeError)
"""Sandboxes that unpack to much and are checked at once by one process: half of its threads are left for other calls."""


class Incoming:
    """An archive that arrives in pieces. `finish()` keeps it; until then, and without, nothing of it is ever served.

    Every method may raise SandboxRefusedError, and then nothing of the file stays here.
    """

    def __init__(self, owner: str, name: str) -> None:
        if not NAME.fullmatch(name):
            raise SandboxRefusedError(
                "the name of a sandbox has up to 200 letters, digits, dots, dashes and underscores"
            )
        _check_free(owner, name)
        self.owner, self.name, self.size = owner, name, 0
        self._most, self._quota = LIMIT_BYTES, quota_left(owner, name)
        self._digest, self._last, self._check = hashlib.sha256(), b"", GzipCheck()
        self._give_back: weakref.finalize[[str], Incoming] | None = None
        try:
            settings.JEDI_SANDBOXES.mkdir(parents=True, exist_ok=True)
            # It is deleted when nothing refers to it any longer, however the request ends.
            self._file = tempfile.NamedTemporaryFile(dir=settings.JEDI_SANDBOXES, prefix=".", suffix=PART)  # noqa: SIM115
        except OSError as exc:
            raise _no_room(exc) from exc

    def write(self, block: bytes) -> None:
        self.size += len(block)
        if self.size > self._most:
            raise self._drop(f"the sandbox has more than {thousands(self._most)} bytes")
        if self.size > self._quota:
            raise self._drop(_over_quota())
        self._digest.update(block)
        self._last = (self._last + block)[-8:]
        try:
            self._check.write(block)
        except BadGzipError as exc:
            raise self._drop(str(exc)) from exc
        if self._check.is_large and self._give_back is None:
            try:
                LARGE.take(self.owner)
            except SandboxRefusedError:
                self.drop()
                raise
            # Given back when nothing refers to this any longer, however the request ends.
            self._give_back = weakref.finalize(self, LARGE.give_back, self.owner)
        try:
            self._file.write(block)
        except OSError as exc:
            self.drop()
            raise _no_room(exc) from exc

    def finish(self) -> Sandbox:
        """Keep the file. Returns its row."""
        if not self.size:
            raise self._drop("the file is empty")
        if not self._check.is_whole:
            raise self._drop("the gzip archive is incomplete. Upload it again")
        row = Sandbox(
            owner=self.owner,
            name=self.name,
            stored=uuid.uuid4().hex,
            size=self.size,
            sha256=self._digest.hexdigest(),
            crc=int.from_bytes(self._last[:4], "little"),
        )
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            os.link(self._file.name, row.path)
        except OSError as exc:
            raise _no_room(exc) from exc
        finally:
            self.drop()
        try:
            _write_row(row)
        except BaseException:
            row.path.unlink(missing_ok=True)
            raise
        return row

    def drop(self) -> None:
        """Forget the file at once."""
        self._file.close()
        if self._give_back is not None:
            self._give_back()

    def _drop(self, sentence: str) -> SandboxRefusedError:
        self.drop()
        return SandboxRefusedError(sentence)


def _check_free(owner: str, name: str) -> None:
    """A name, and the one beside it that may be overwritten, belong to one owner: nobody takes the other half first."""
    plain = name.removesuffix(OVERWRITABLE)
    for row in Sandbox.names.filter(name__in=[plain, plain + OVERWRITABLE]):
        if row.stored is not None and (row.owner != owner or (row.name == name and not name.endswith(OVERWRITABLE))):
            raise SandboxRefusedError(f"there is a sandbox of the name {row.name} already")
        if row.owner != owner:
            raise SandboxRefusedError(f"the name {row.name} belongs to another user: choose another name")


def quota_left(owner: str, replaced: str = "") -> int:
    """Bytes that somebody may still give to the site; what `replaced` holds does not count."""
    kept = Sandbox.objects.filter(owner=owner).exclude(name=replaced).aggregate(total=Sum("size"))["total"] or 0
    return max(0, int(settings.JEDI_SANDBOX_QUOTA_MB * MB) - int(kept))


def _over_quota() -> str:
    return (
        f"your sandboxes would exceed the quota of {settings.JEDI_SANDBOX_QUOTA_MB} MB; "
        f"those that were not used for {settings.JEDI_SANDBOX_DAYS} days are removed"
    )


def _no_room(exc: OSError) -> SandboxRefusedError:
    if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SandboxRefusedError("the site has no space for the sandbox; ask an administrator to free some")
    return SandboxRefusedError(f"the site cannot write the sandbox: {exc.strerror}")


def _write_row(row: Sandbox) -> None:
    """The row of a file that is complete, within the quota. What it takes the place of is deleted after the commit."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:  # two uploads of one owner do not share what is left
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"sandboxes of {row.owner}"])
            _check_free(row.owner, row.name)
            if row.size > quota_left(row.owner, row.name):
                raise SandboxRefusedError(_over_quota())
            older = Sandbox.names.filter(name=row.name).first()
            if older is not None:
                if older.sha256 not in ("", row.sha256) and not row.name.endswith(OVERWRITABLE):
                    raise SandboxRefusedError(
                        f"{row.name} was the name of a removed sandbox with other contents: choose another name"
                    )
                row.pk, row.created, row.last_used = older.pk, older.created, older.last_used
                if older.stored is not None:
                    unlink_after_commit(older.path)
            row.save()
            used(row.name)
    except IntegrityError as exc:
        raise SandboxRefusedError(f"there is a sandbox of the name {row.name} already") from exc


def keep(source: Path, owner: str, prefix: str = "sources") -> str:
    """Keep a copy of an archive. Returns its name, which nobody can guess. Raises SandboxRefusedError, OSError."""
    incoming = Incoming(owner, f"{prefix}.{uuid.uuid4()}.tar.gz")
    with source.open("rb") as file:
        while block := file.read(1 << 20):
            incoming.write(block)
    return incoming.finish().name
