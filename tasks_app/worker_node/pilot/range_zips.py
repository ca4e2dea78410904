"""Packs the outputs of ranges of events into one file. The name of each member says whose output it is."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from tasks_app.worker_node.pilot.errors import Code
from tasks_app.worker_node.pilot.job_folders import FLAGS
from tasks_app.worker_node.pilot.range_words import Failed, Finished
from tasks_app.worker_node.pilot.walls import JOB

log = logging.getLogger(__name__)

SCOPE: Final = "transient"


def zip_name(first: Finished) -> str:
    """As PanDA's pilots name such a file, by the first range in it."""
    return f"EventService_premerge_{first.range_id}.tar"


def pack(outputs: Sequence[Finished], folder: Path, target: Path) -> tuple[list[Finished], list[Failed]]:
    """Pack outputs, as far as they are plain files below the job's folder; returns those that are in, and why others are not.

    Raises OSError when the file cannot be written. Nothing is there then, nor when no output is.
    """
    packed, failed = [], []
    target.unlink(missing_ok=True)  # the payload may have left something of that name
    try:
        with open(target, "xb") as made, tarfile.open(fileobj=made, mode="w") as tar:
            for one in outputs:
                try:
                    file = open_output(one.path, folder)
                except OSError as exc:
                    why = f"The output {one.path:.200} of the range cannot be read: {exc.strerror or exc}"
                    failed.append(Failed(one.range_id, why, code=Code.OUTPUT_MISSING))
                    continue
                with file:
                    member = tarfile.TarInfo(member_name(one))
                    member.size = os.fstat(file.fileno()).st_size
                    tar.addfile(member, file)
                packed.append(one)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    if not packed:
        target.unlink()
    return packed, failed


def member_name(output: Finished) -> str:
    """The name of the payload's file, with the range at its end unless it is in there."""
    name = os.path.basename(output.path)
    return name if output.range_id in name else f"{name}.{output.range_id}"


@contextlib.contextmanager
def _place_of(said: str, folder: Path) -> Iterator[tuple[int, str]]:
    """The open folder in which an output is, and its name there; no link is followed on the way. Raises OSError.

    `said`: the path in the payload's words.
    """
    top = str(folder)
    inside = said.removeprefix(f"{top}/") if said.startswith(f"{top}/") else said.removeprefix(f"{JOB}/")
    parts = [part for part in inside.split("/") if part not in ("", ".")]
    if inside.startswith("/") or "\0" in inside or ".." in parts or not parts:
        raise OSError("it is outside of the job's folder")
    with contextlib.ExitStack() as opened:
        above = os.open(top, FLAGS)
        opened.callback(os.close, above)
        for part in parts[:-1]:
            above = os.open(part, FLAGS, dir_fd=above)
            opened.callback(os.close, above)
        yield above, parts[-1]


def open_output(said: str, folder: Path) -> BinaryIO:
    """An output, open to read, whose path is as the payload says it. Raises OSError when it is none of the job's plain files."""
    with _place_of(said, folder) as (above, name):
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    file = open(fd, "rb")  # noqa: SIM115 - who asks closes it
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise OSError("it is no plain file")
    return file


def remove_outputs(outputs: Sequence[Finished], folder: Path) -> None:
    """They are in the storage, and make room here."""
    for one in outputs:
        with contextlib.suppress(OSError), _place_of(one.path, folder) as (above, name):
            os.unlink(name, dir_fd=above)
