"""The archives with users' code that this site keeps for its jobs. They are kept as they are, never unpacked here.

A name belongs for ever to the user who uploads it first, or whose task names it first, and what was uploaded under it never
changes, unless the name says that its owner may overwrite it: jobs fetch their code by name, also those of a task that runs
again after its sandbox was removed.

A file is complete on disk, under a name that the site makes, before its row is written: what has no row is never served,
and is swept away later. Within the owner's quota an archive stays as long as an open task has named it, and for
JEDI_SANDBOX_DAYS after its last use.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Sum
from django.http.request import validate_host

from jedisite.vocabulary.words import thousands
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Sandbox, TaskParams
from tasks_app.params.buildstep import OVERWRITABLE, archives_of
from tasks_app.params.clientwords import is_from_client
from tasks_app.params.resubmission import apply_changes

LIMIT_BYTES = 768 * 1024 * 1024
MB = 1_000_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
PART = ".part"
UNPACKED_LIMIT_BYTES = 5 * 1024**3
"""Of what an archive holds; transforms unpack no more."""
STEP_BYTES = 1 << 20
PACKED_STEP_BYTES = 1 << 14
"""Each part of an archive has what is behind it in the same step copied: in long steps, very many parts took hours."""
PARTS_LIMIT = 200_000
"""Of one archive. Tools that pack in parallel make one of each 64 KiB or more."""
FREE_BYTES, FREE_FACTOR = 1024**3, 100
"""What unpacks to more than the one has to weigh at least a hundredth of it: a few MB of zeros took a thread for long."""
LEFT_OVER = timedelta(days=1)
"""Files without a row are swept when they are older."""


class SandboxRefusedError(ValueError):
    """The archive is not kept; the sentence says why."""


class BadGzipError(ValueError):
    """What arrives is no gzip file, or holds too much; the sentence says which."""


class GzipCheck:
    """Reads a gzip file in pieces, and keeps nothing of what it holds. Its parts bear their checksums and sizes."""

    def __init__(self) -> None:
        self._part = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._packed = self._unpacked = 0
        self._parts = 1

    def write(self, block: bytes) -> None:
        """Raises BadGzipError."""
        self._packed += len(block)
        for start in range(0, len(block), PACKED_STEP_BYTES):
            self._step(block[start : start + PACKED_STEP_BYTES])

    def _step(self, block: bytes) -> None:
        while block:
            if self._part.eof:  # the next part; what follows the last one may be zeros
                if not block.strip(b"\0"):
                    return
                self._part = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._parts += 1
            try:
                self._unpacked += len(self._part.decompress(block, STEP_BYTES))
            except zlib.error as exc:
                raise BadGzipError("the file is no gzip archive, or was damaged on its way") from exc
            self._check()
            block = self._part.unused_data if self._part.eof else self._part.unconsumed_tail

    def _check(self) -> None:
        if self._unpacked > UNPACKED_LIMIT_BYTES:
            raise BadGzipError(
                f"the sandbox holds more than {thousands(UNPACKED_LIMIT_BYTES)} bytes when it is unpacked"
            )
        if self._unpacked > max(FREE_BYTES, FREE_FACTOR * self._packed):
            free = thousands(FREE_BYTES)
            raise BadGzipError(
                f"the sandbox unpacks to more than {free} bytes, and to more than {FREE_FACTOR} times its size"
            )
        if self._parts > PARTS_LIMIT:
            raise BadGzipError(f"the sandbox has more than {thousands(PARTS_LIMIT)} gzip parts: pack it in one")

    @property
    def is_whole(self) -> bool:
        return self._part.eof


class Incoming:
    """An archive that arrives in pieces. `finish()` keeps it; until then, and without, nothing of it is ever served.

    Every method may raise SandboxRefusedError, and then nothing of the file stays here.
    """

    def __init__(self, owner: str, name: str) -> None:
        if not NAME.fullmatch(name):
            raise SandboxRefusedError("a sandbox is named by up to 200 letters, digits, dots, dashes and underscores")
        _check_free(owner, name)
        self.owner, self.name, self.size = owner, name, 0
        self._most, self._quota = LIMIT_BYTES, quota_left(owner, name)
        self._digest, self._last, self._check = hashlib.sha256(), b"", GzipCheck()
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
        try:
            self._file.write(block)
        except OSError as exc:
            self._file.close()
            raise _no_room(exc) from exc

    def finish(self) -> Sandbox:
        """Keep the file. Returns its row."""
        if not self.size:
            raise self._drop("the file is empty")
        if not self._check.is_whole:
            raise self._drop("the gzip archive is cut off: its end is missing. Send it again")
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
            self._file.close()
        try:
            _write_row(row)
        except BaseException:
            row.path.unlink(missing_ok=True)
            raise
        return row

    def drop(self) -> None:
        """Forget the file at once."""
        self._file.close()

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
        f"your sandboxes would take more than {settings.JEDI_SANDBOX_QUOTA_MB} MB; "
        f"those that were not used for {settings.JEDI_SANDBOX_DAYS} days are removed"
    )


def _no_room(exc: OSError) -> SandboxRefusedError:
    if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return SandboxRefusedError("the site has no room for the sandbox; its administrators have to make some")
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
                        f"{row.name} was the name of a sandbox that is removed, and had other contents: choose another name"
                    )
                row.pk, row.created, row.last_used = older.pk, older.created, older.last_used
                if older.stored is not None:
                    _unlink(older.path)
            row.save()
            used(row.name)
    except IntegrityError as exc:
        raise SandboxRefusedError(f"there is a sandbox of the name {row.name} already") from exc


def _unlink(path: Path) -> None:
    """After the commit: remove a file. One that cannot be removed keeps none of the others, and is swept later."""
    transaction.on_commit(lambda: path.unlink(missing_ok=True), robust=True)


def keep(source: Path, owner: str, prefix: str = "sources") -> str:
    """Keep a copy of an archive. Returns its name, which nobody can guess. Raises SandboxRefusedError, OSError."""
    incoming = Incoming(owner, f"{prefix}.{uuid.uuid4()}.tar.gz")
    with source.open("rb") as file:
        while block := file.read(1 << 20):
            incoming.write(block)
    return incoming.finish().name


def find(name: str) -> Sandbox | None:
    """The sandbox of that name; None when there is none, or its file is gone."""
    row = Sandbox.objects.filter(name=name).first()
    return row if row is not None and row.is_there else None


def same(owner: str, size: int, crc: int) -> Sandbox | None:
    """The newest sandbox of somebody that holds the same."""
    row = Sandbox.objects.filter(owner=owner, crc=crc, size=size).order_by("-id").first()
    return row if row is not None and row.is_there else None


def used(name: str, task_id: int | None = None) -> None:
    """Date a sandbox anew, at most once an hour, and note the task that names it: an open task keeps it."""
    # Tasks that share a sandbox do not wait for one another to date it.
    with connection.cursor() as cursor:
        cursor.execute(
            """WITH found AS (SELECT id FROM sandboxes WHERE name = %(name)s FOR KEY SHARE),
                    noted AS (INSERT INTO sandbox_tasks (sandbox_id, task_id)
                              SELECT id, %(task)s FROM found WHERE %(task)s::bigint IS NOT NULL ON CONFLICT DO NOTHING),
                    old AS (SELECT id FROM sandboxes WHERE name = %(name)s
                               AND last_used < clock_timestamp() - interval '1 hour' FOR NO KEY UPDATE SKIP LOCKED)
               UPDATE sandboxes s SET last_used = clock_timestamp() FROM old WHERE s.id = old.id""",
            {"name": name, "task": task_id},
        )


def refusal(
    user: str, raw: Mapping[str, Any], task_id: int | None = None, command_line: str | None = None, *, new: str = ""
) -> str:
    """Why a task of that user cannot run with the sandboxes that its parameters name; "" when it can.

    A sandbox of another user must be there when the task is submitted (without `task_id`) or gets it as its `new` one;
    afterwards the task must have named it then. Without `command_line` that of the parameters counts.
    """
    for name in archives_of(raw, _line(raw) if command_line is None else command_line):
        row = Sandbox.names.filter(name=name).first()
        if row is not None and row.owner != user:
            if name.endswith(OVERWRITABLE):
                return f"the sandbox {name} belongs to another user, who may overwrite it"
            at_door = task_id is None or name == new
            if row.stored is None if at_door else not row.tasks.filter(pk=task_id).exists():
                return f"the sandbox {name} belongs to another user, and was not there when the task was submitted"
        if _is_ours(raw) and (row is None or not row.is_there):
            return _not_here(name, row, raw)
        if "$" in name:  # nobody owns the names that come of it
            return f"the sandbox {name} is named by a placeholder: write its whole name"
    return ""


def _not_here(name: str, row: Sandbox | None, raw: Mapping[str, Any]) -> str:
    at = f" at {raw['sourceURL']}" if raw.get("sourceURL") else ""
    if row is not None and row.sha256:
        other = " (prun: --useNewCode)" if is_from_client(raw) else ""
        return (
            f"the sandbox {name} was removed and is not kept{at}: upload the same archive again, or name another{other}"
        )
    return f"the sandbox {name} is not kept{at}: upload it first"


def _line(raw: Mapping[str, Any]) -> str:
    return " ".join(str(item.get("value", "")) for item in raw.get("jobParameters") or ())


def _is_ours(raw: Mapping[str, Any]) -> bool:
    """Whether this site has to keep the sandboxes: it is named, or no other server is, at least none that can be read."""
    source = str(raw.get("sourceURL") or "")
    try:
        url = urlsplit(source)
    except ValueError:
        return True
    # A folder (file://) is that of whoever runs the job: to look there would tell users which files this machine has.
    return not source or bool(
        url.scheme != "file" and url.hostname and validate_host(url.hostname, settings.ALLOWED_HOSTS)
    )


def claim(user: str, raw: Mapping[str, Any], command_line: str | None = None) -> None:
    """Names of sandboxes that nobody has yet become this user's: else another user could upload code for the task."""
    found = archives_of(raw, _line(raw) if command_line is None else command_line)
    taken = set(Sandbox.names.filter(name__in=found).values_list("name", flat=True))
    new = [name for name in sorted(found) if name not in taken and NAME.fullmatch(name)]
    rows = [Sandbox(owner=user, name=name, stored=None, size=0, crc=0) for name in new]
    Sandbox.names.bulk_create(rows, ignore_conflicts=True)


def note_task(task_id: int, raw: Mapping[str, Any]) -> None:
    """A task was submitted, or gets other code: its sandboxes stay until it has ended."""
    for name in archives_of(raw, _line(raw)):
        used(name, task_id)


def refusal_again(task_id: int, user: str, raw: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """Why a task of these parameters cannot run with these changes; "" when it can, and then it has a new sandbox noted."""
    changed, new = apply_changes(raw, changes), os.path.basename(str(changes.get("fixedSandbox") or ""))
    claim(user, changed)
    no = refusal(user, changed, task_id, new=new)
    if new and not no:
        used(new, task_id)
    return no


def gone(task_ids: Iterable[int]) -> dict[int, str]:
    """Why those of the tasks cannot run again that name a sandbox which this site has kept for them and keeps no longer.

    One statement, and one more when there are any.
    """
    named: dict[int, dict[str, Sandbox]] = defaultdict(dict)
    there: dict[int, bool] = {}
    links: Any = Sandbox.tasks.through
    for link in links.objects.filter(task_id__in=list(task_ids)).select_related("sandbox"):
        row = link.sandbox
        if row.pk not in there:
            there[row.pk] = row.is_there
        if not there[row.pk]:
            named[link.task_id][row.name] = row
    found = {}
    for task_id, raw in TaskParams.objects.filter(pk__in=list(named)).values_list("pk", "params"):
        names = [name for name in archives_of(raw, _line(raw)) if name in named[task_id]] if _is_ours(raw) else []
        if names:
            found[task_id] = _not_here(names[0], named[task_id][names[0]], raw)
    return found


def lacking(task_id: int, user: str, raw: Mapping[str, Any], command_line: str) -> str:
    """Why the jobs of a task cannot get its sandbox; empty when they can, or when another server keeps it.

    A sandbox that is used is marked as such, so that cleaning leaves it.
    """
    claim(user, raw, command_line)
    no = refusal(user, raw, task_id, command_line)
    if no:
        return f"user sandbox file unavailable: {no}"
    for name in archives_of(raw, command_line):
        used(name, task_id)
    return ""


@transaction.atomic
def remove(rows: Iterable[int]) -> int:
    """Remove sandboxes by their ids, whoever needs them; their names stay taken. Returns how many there were."""
    found = list(Sandbox.objects.select_for_update(skip_locked=True).filter(pk__in=list(rows)))
    Sandbox.objects.filter(pk__in=[row.pk for row in found]).update(stored=None)
    for row in found:
        _unlink(row.path)
    return len(found)


def unused(before: datetime, limit: int) -> list[int]:
    """Ids of sandboxes that were last used before then, and that no open task has named; oldest use first."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT s.id FROM sandboxes s
                WHERE s.last_used < %s AND s.stored IS NOT NULL
                  AND NOT EXISTS (SELECT 1 FROM sandbox_tasks u JOIN jedi_tasks t ON t.jeditaskid = u.task_id
                                   WHERE u.sandbox_id = s.id AND t.status <> ALL(%s))
                ORDER BY s.last_used LIMIT %s""",
            [before, sorted(TASK_FINAL), limit],
        )
        return [number for (number,) in cursor.fetchall()]


def sweep(now: datetime) -> int:
    """Delete what killed processes left: parts of uploads, and files whose row was not written or is gone."""
    before = (now - LEFT_OVER).timestamp()
    try:
        with os.scandir(settings.JEDI_SANDBOXES) as entries:
            old = {
                e.name: Path(e.path) for e in entries if e.is_file(follow_symlinks=False) and e.stat().st_mtime < before
            }
    except FileNotFoundError:
        return 0
    known = set(Sandbox.objects.filter(stored__in=list(old)).values_list("stored", flat=True))
    lost = [path for name, path in old.items() if name not in known]
    for path in lost:
        path.unlink(missing_ok=True)
    return len(lost)
