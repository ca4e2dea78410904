"""Takes a job's outputs and its log to the storage element."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import tarfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks_app.worker_node.pilot.copying import Copied, copy_new
from tasks_app.worker_node.pilot.errors import DIAG_LIMIT, Code, JobFailedError
from tasks_app.worker_node.pilot.folder_away import why_away
from tasks_app.worker_node.pilot.job import Output
from tasks_app.worker_node.pilot.plain import fault_of, plain_text
from tasks_app.worker_node.pilot.storage import Place, place

log = logging.getLogger(__name__)

LOG_MEMBERS = ("payload.stdout", "payload.stderr", "pilot.log", "jobReport.json")
REPORT_LIMIT_BYTES = 10_000_000
RESULTS_LIMIT_BYTES = 1_000_000
PLAIN = "plain file"
NAMED = 5
"""Missing outputs that a sentence names."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that lies on the storage element."""

    lfn: str
    guid: str
    copied: Copied
    place: Place


@dataclass(frozen=True, slots=True)
class PayloadReport:
    """What the payload says of itself in jobReport.json; None and empty when it says nothing."""

    events: int | None = None
    file_events: tuple[tuple[str, int], ...] = ()
    results: Mapping[str, object] | None = None
    """What a preprocessing step found, for the server."""
    failure: tuple[str, str] | None = None
    """Kind and text of a failure that is the transform's and not the user's."""
    corrupted: frozenset[str] = frozenset()
    """Inputs that cannot be read."""
    trouble: str = ""
    """What of it was left out, and why."""


def written(outputs: Sequence[Output], folder: Path) -> list[Output]:
    """The outputs that are there. Raises JobFailedError when the payload did not write all that it must as plain files."""
    kinds = {file.lfn: kind_of(folder / file.lfn) for file in outputs}
    left_out = {file.lfn for file in outputs if file.optional and not kinds[file.lfn]}
    outputs = [file for file in outputs if file.lfn not in left_out]
    kinds = {file.lfn: kinds[file.lfn] for file in outputs}
    missing = [f"{lfn} (it is a {kind})" if kind else lfn for lfn, kind in kinds.items() if kind != PLAIN]
    if missing:
        count = len(outputs) - len(missing)
        raise JobFailedError(
            Code.OUTPUT_MISSING,
            f"The payload ended successfully but wrote {count} of its {len(outputs)} output{'s' * (len(outputs) != 1)}; "
            f"missing: {', '.join(missing[:NAMED])}" + (f" and {len(missing) - NAMED} more" if missing[NAMED:] else ""),
        )
    return outputs


def make_log(target: Path, folder: Path) -> None:
    """Pack what payload and pilot wrote about the job. Raises JobFailedError."""
    try:
        # The payload may have left something of that name, such as a link to a file that is not its own to write.
        target.unlink(missing_ok=True)
        with open(target, "xb") as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
            for name in LOG_MEMBERS:
                if kind_of(folder / name) == PLAIN:
                    tar.add(folder / name, f"{target.name.partition('.')[0]}/{name}", recursive=False)
    except OSError as exc:
        raise JobFailedError(Code.LOG_NOT_MADE, f"The log could not be packed: {exc.strerror or exc}") from exc


def stage_out(
    file: Output, base: Path, folder: Path, check: Callable[[], None], *, holds_files: bool = False
) -> Stored:
    """Copy one file to its place: under a temporary name first, so that nobody ever sees half a file.

    `holds_files`: the storage is known to have files, so that an empty folder is the place at which nothing is mounted.
    A file that is there already is never overwritten: it belongs to somebody's books. Raises JobFailedError, and whatever
    `check` raises; then there is nothing at the place that was not there before.
    """
    where = place(base, file.scope, file.lfn)
    _check_readable(folder / file.lfn)
    temporary = where.path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        if holds_files and (why := why_away(base, holds_files=True)):
            raise OSError(f"the folder of its storage ({base}) {why}")
        make_folders(where)
        copied = copy_new(folder / file.lfn, temporary, check, durable=True, follow=False)
        _give_name(temporary, where.path, file.lfn)
        sync_folder(where.path.parent)
    except OSError as exc:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise JobFailedError(
            Code.STAGE_OUT_FAILED, f"Output {file.lfn} could not be stored: {exc.strerror or exc}"
        ) from exc
    log.info("stageout.copied lfn=%s bytes=%d adler32=%s to=%s", file.lfn, copied.size, copied.hex, where.path)
    return Stored(file.lfn, file.guid or str(uuid.uuid4()), copied, where)


def _give_name(temporary: Path, target: Path, lfn: str) -> None:
    """Raises OSError, and JobFailedError when the name is taken: no storage is to blame for that."""
    try:
        os.link(temporary, target)  # unlike a renaming, this fails when the name is taken
    except FileExistsError as exc:
        temporary.unlink(missing_ok=True)
        said = f"Output {lfn} was not stored: its storage has another file of that name"
        raise JobFailedError(Code.OUTPUT_EXISTS, said) from exc
    temporary.unlink()


def _check_readable(output: Path) -> None:
    """Raises JobFailedError when its payload has left an output that cannot be read: no storage is to blame for that."""
    try:
        os.close(os.open(output, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as exc:
        said = exc.strerror or exc
        raise JobFailedError(Code.OUTPUT_MISSING, f"Output {output.name} cannot be read: {said}") from exc


def take_back(stored: Sequence[Stored]) -> None:
    """Remove what was stored for a job that fails after all; nobody would know of it."""
    for file in stored:
        with contextlib.suppress(OSError):
            file.place.path.unlink()


def read_report(folder: Path) -> PayloadReport:
    """Read jobReport.json. It is the payload's: anything in it that makes no sense is left out."""
    path = folder / "jobReport.json"
    try:
        if kind_of(path) != PLAIN or path.stat().st_size > REPORT_LIMIT_BYTES:
            return PayloadReport()
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as exc:
        return PayloadReport(trouble=f"jobReport.json was left out: it cannot be read ({type(exc).__name__})")
    if not isinstance(raw, dict):
        return PayloadReport()
    files = raw.get("files")
    counts = {
        str(lfn): entry.get("nevents")
        for lfn, entry in (files.items() if isinstance(files, dict) else ())
        if isinstance(entry, dict)
    }
    results, trouble = _results(raw.get("results"))
    return PayloadReport(
        _count(raw.get("nEvents")),
        tuple((lfn, number) for lfn, value in counts.items() if (number := _count(value)) is not None),
        results,
        _failure(raw.get("failure")),
        _names(raw.get("corruptedFiles")),
        trouble,
    )


def _results(value: object) -> tuple[Mapping[str, object] | None, str]:
    """An object that the site can take; and if it cannot, why."""
    if not isinstance(value, dict):
        return None, ""
    fault = fault_of(value)
    if not fault and len(json.dumps(value)) > RESULTS_LIMIT_BYTES:
        fault = f"it has more than {RESULTS_LIMIT_BYTES} bytes"
    return (None, f"The payload's metadata was left out: {fault}") if fault else (value, "")


def _failure(value: object) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    kind, text = value.get("kind"), value.get("text")
    return (kind, plain_text(text)[:DIAG_LIMIT]) if isinstance(kind, str) and isinstance(text, str) else None


def _names(value: object) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def kind_of(path: Path) -> str:
    """What is there; "" for nothing. A link is no plain file: it could lead to one that is not the payload's to give away."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    kinds = {stat.S_IFREG: PLAIN, stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "named pipe"}
    return kinds.get(stat.S_IFMT(mode), "special file")


def make_folders(where: Place) -> None:
    """The folders between a storage's own folder and a place in it. Raises OSError, also when they lead out of it.

    The storage's own is never made: where it is missing its disk is not mounted, and what is written would lie elsewhere.
    """
    _check_inside(where)
    if not where.base.is_dir():
        raise FileNotFoundError(f"the folder of its storage ({where.base}) is not there")
    between = where.path.parent.relative_to(where.base).parts
    for number in range(1, len(between) + 1):
        where.base.joinpath(*between[:number]).mkdir(exist_ok=True)
    _check_inside(where)  # somebody may have made a link meanwhile


def _check_inside(where: Place) -> None:
    """Raises OSError when a link among the folders leads out of the storage; those that are missing count as they will be."""
    if not where.path.parent.resolve().is_relative_to(where.base.resolve()):
        raise OSError(f"{where.path.parent} leads out of the storage")


def sync_folder(folder: Path) -> None:
    """Make the new name durable: after a crash of the machine a reported file must still be there."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
