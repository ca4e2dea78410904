"""Brings a job's inputs into its work folder and checks that they are what the server says they are."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tasks_app.worker_node.pilot.copying import Copied, copy_new
from tasks_app.worker_node.pilot.errors import Code, Failure, JobFailedError
from tasks_app.worker_node.pilot.folder_away import AWAY, why_away
from tasks_app.worker_node.pilot.job import Input

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Readable:
    """What may be an input. Nothing below `hidden`, the site's own folders, but for what lies in a storage.

    `storages` are asked for when they are needed.
    """

    hidden: Sequence[str]
    storages: Callable[[], Sequence[Path]]

    def stored(self, path: Path) -> bool:
        """Whether a path without links lies in a storage."""
        return self._root_of(path) is not None

    def _root_of(self, path: Path) -> Path | None:
        roots = self.storages()
        return next((one for one in roots if path.is_relative_to(one) or path.is_relative_to(one.resolve())), None)

    def why_away(self, path: Path) -> str:
        """Why a path cannot be read that lies in a storage whose folder is away; "" when it does not, or that is there."""
        root = self._root_of(path)
        why = why_away(root, holds_files=True) if root is not None else ""
        return f"{AWAY}{root} {why}" if why else ""

    def refuses(self, path: Path) -> bool:
        return any(path.is_relative_to(Path(folder).resolve()) for folder in self.hidden) and not self.stored(path)


def stage_in(inputs: Sequence[Input], folder: Path, check: Callable[[], None], readable: Readable) -> int:
    """Copy all inputs; returns the bytes copied. Raises JobFailedError, which names all that are not there, and whatever
    `check` and the storages raise."""
    copied = 0
    for number, file in enumerate(inputs, start=1):
        try:
            copied += _stage_one(file, folder, check, readable)
        except JobFailedError as exc:
            if exc.failure.code != Code.INPUT_MISSING:
                raise
            others = [one.lfn for one in inputs[number:] if _is_absent(one, readable)]
            if not others:
                raise
            diag = f"{exc.failure.diag}; also not there: {', '.join(others)}"
            raise JobFailedError(Code.INPUT_MISSING, diag, corrupted=[file.lfn, *others]) from None
    return copied


def reads_from(inputs: Sequence[Input], base: Path) -> bool:
    """Whether an input lies in a folder, going by its address."""

    def lies_there(file: Input) -> bool:
        try:
            path = local_path(file.url or "")
        except (OSError, ValueError, RuntimeError):
            return False
        return path is not None and path.is_relative_to(base)

    return any(map(lies_there, inputs))


def _is_absent(file: Input, readable: Readable) -> bool:
    try:
        path = local_path(file.url or "")
        return path is not None and readable.stored(path.resolve()) and not path.exists()
    except (OSError, ValueError, RuntimeError):
        return False


def stage_in_zips(inputs: Sequence[Input], folder: Path, check: Callable[[], None], readable: Readable) -> None:
    """Copy the inputs of a job that merges outputs of ranges: all of them, so that its failure names each that is corrupt.

    Their ranges are processed again; the codes are those by which the server knows that. Raises what `stage_in` raises.
    """
    corrupt: list[Failure] = []
    for file in inputs:
        try:
            _stage_one(file, folder, check, readable)
        except JobFailedError as exc:
            if not exc.failure.corrupted:
                raise
            corrupt.append(exc.failure)
    if corrupt:
        missing = all(failure.code == Code.INPUT_MISSING for failure in corrupt)
        raise JobFailedError(
            Code.NO_SUCH_FILE if missing else Code.INPUT_CHECKSUM_WRONG,
            "; ".join(failure.diag for failure in corrupt),
            corrupted=[lfn for failure in corrupt for lfn in failure.corrupted],
        )


def local_path(url: str) -> Path | None:
    """The path of a `file://` address on this machine, decoded; None for any other address."""
    for prefix in ("file://localhost/", "file:///"):
        if url.startswith(prefix):
            return Path("/" + unquote(url.removeprefix(prefix)))
    return None


def _stage_one(file: Input, folder: Path, check: Callable[[], None], readable: Readable) -> int:
    if not file.url:
        says = f"Input {file.lfn} has no address: the file is missing in the storage"
        raise JobFailedError(Code.STAGE_IN_FAILED, says, corrupted=[file.lfn])
    source = local_path(file.url)
    if source is None:
        raise JobFailedError(
            Code.STAGE_IN_FAILED, f"Input {file.lfn}: {file.url!r} is not an address that this pilot can read"
        )
    named = source
    try:
        source = source.resolve()
        if readable.refuses(source):
            diag = f"Input {file.lfn}: {file.url!r} is in the site's own folder, outside any storage"
            raise JobFailedError(Code.STAGE_IN_FAILED, diag)
        # Links were followed above: what became one since leads somewhere that was not looked at.
        copied = copy_new(source, folder / file.lfn, check, durable=False, follow=False, resolved=True)
    except FileNotFoundError:
        _check_storage(file, named, readable)
        says = f"Input {file.lfn} is not in the storage ({file.url})"
        raise JobFailedError(Code.INPUT_MISSING, says, corrupted=[file.lfn]) from None
    except (OSError, ValueError, RuntimeError) as exc:
        if not isinstance(exc, OSError):
            raise JobFailedError(Code.STAGE_IN_FAILED, f"Input {file.lfn}: {file.url!r} is not a path") from exc
        _check_storage(file, named, readable)
        code = Code.NO_LOCAL_SPACE if exc.errno in (errno.ENOSPC, errno.EDQUOT) else Code.STAGE_IN_FAILED
        raise JobFailedError(code, f"Input {file.lfn} could not be copied: {exc.strerror or exc}") from exc
    try:
        compare(file, copied)
    except JobFailedError as exc:
        if readable.stored(source):
            said = f"{exc.failure.diag} ({source})"  # which of its copies it is
            raise JobFailedError(exc.failure.code, said, corrupted=[file.lfn]) from None
        # What is in a file of the machine that nobody stored is not for everybody who reads of the job.
        says = (
            f"Input {file.lfn} is not what was expected: its size or checksum differs, and no storage has a copy. If "
            "it was changed on purpose, register it under another name for a new task"
        )
        raise JobFailedError(exc.failure.code, says, corrupted=[file.lfn]) from None
    log.info("stagein.copied lfn=%s bytes=%d adler32=%s", file.lfn, copied.size, copied.hex)
    return copied.size


def _check_storage(file: Input, path: Path, readable: Readable) -> None:
    """Raises JobFailedError when it is not the file that is missing, but its storage."""
    if why := readable.why_away(path):
        raise JobFailedError(Code.STAGE_IN_FAILED, f"{why}. Input {file.lfn} could not be read")


def compare(file: Input, copied: Copied) -> None:
    """Raises JobFailedError when the copy has another size or checksum than the server expects."""
    if file.size is not None and file.size != copied.size:
        raise JobFailedError(
            Code.STAGE_IN_FAILED,
            f"Input {file.lfn} has {copied.size} bytes, {file.size} were expected",
            corrupted=[file.lfn],
        )
    if file.adler32 is not None and file.adler32 != copied.adler32:
        raise JobFailedError(
            Code.INPUT_CHECKSUM_WRONG,
            f"Input {file.lfn} has the adler32 checksum {copied.hex}, {file.adler32:08x} was expected",
            corrupted=[file.lfn],
        )
