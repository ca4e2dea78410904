"""The names of files that a job's command line gives for each input stream. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_app.splitting.chunk import Group, InputFile


def input_names(streams: Sequence[str], group: Group) -> dict[str, Sequence[str]]:
    """By stream, in the order of the files: those of the master and of each secondary."""
    found: dict[str, Sequence[str]] = {}
    for stream, files in zip(streams, (group.files, *group.secondaries), strict=True):
        names = _distinct(files)
        found[stream] = [*found[stream], *names] if stream in found else names
    return found


def _distinct(files: Sequence[InputFile]) -> Sequence[str]:
    """Names in order; several ranges of one file name it once."""
    if len(files) == 1:
        return (files[0].lfn,)
    if files and files[0].start_event is None:
        return [f.lfn for f in files]
    return list(dict.fromkeys(f.lfn for f in files))
