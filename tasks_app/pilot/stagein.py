"""Brings a job's inputs into its work folder and checks that they are what the server says they are."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from tasks_app.pilot.copying import Copied, copy_new
from tasks_app.pilot.errors import Code, JobError
from tasks_app.pilot.job import Input

log = logging.getLogger(__name__)


def stage_in(inputs: Sequence[Input], folder: Path, check: Callable[[], None]) -> int:
    """Copy all inputs; returns the bytes copied. Raises JobError, and whatever `check` raises."""
    return sum(_stage_one(file, folder, check) for file in inputs)


def local_path(url: str) -> Path | None:
    """The path of a `file://` address on this machine, decoded; None for any other address."""
    for prefix in ("file://localhost/", "file:///"):
        if url.startswith(prefix):
            return Path("/" + unquote(url.removeprefix(prefix)))
    return None


def _stage_one(file: Input, folder: Path, check: Callable[[], None]) -> int:
    source = local_path(file.url)
    if source is None:
        raise JobError(Code.STAGE_IN_FAILED, f"Input {file.lfn}: {file.url!r} is no address that this pilot can read")
    try:
        copied = copy_new(source, folder / file.lfn, check, durable=False)
    except FileNotFoundError:
        raise JobError(Code.INPUT_MISSING, f"Input {file.lfn} is not in the storage ({file.url})") from None
    except OSError as exc:
        code = Code.NO_LOCAL_SPACE if exc.errno in (errno.ENOSPC, errno.EDQUOT) else Code.STAGE_IN_FAILED
        raise JobError(code, f"Input {file.lfn} could not be copied: {exc.strerror or exc}") from exc
    compare(file, copied)
    log.info("stagein.copied lfn=%s bytes=%d adler32=%s", file.lfn, copied.size, copied.hex)
    return copied.size


def compare(file: Input, copied: Copied) -> None:
    """Raises JobError when the copy has another size or checksum than the server expects."""
    if file.size is not None and file.size != copied.size:
        raise JobError(Code.STAGE_IN_FAILED, f"Input {file.lfn} has {copied.size} bytes, {file.size} were expected")
    if file.adler32 is not None and file.adler32 != copied.adler32:
        raise JobError(
            Code.INPUT_CHECKSUM_WRONG,
            f"Input {file.lfn} has the adler32 checksum {copied.hex}, {file.adler32:08x} was expected",
        )
