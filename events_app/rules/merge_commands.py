"""What a merge job of events runs: what its consumers' parameters say between two tags, or the site's own transform. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

_TRANSFORM: Final = re.compile(r"<PANDA_ESMERGE_TRF>(.*?)</PANDA_ESMERGE_TRF>", re.DOTALL)
_PARAMETERS: Final = re.compile(r"<PANDA_ESMERGE_JOBP>(.*?)</PANDA_ESMERGE_JOBP>", re.DOTALL)
MERGES_EVENTS: Final = "merge_events"
"""The site's own transform: it writes each output from the files of the ranges, given the names of the outputs."""
UNDEFINED: Final = "UnDefined"
"""What JEDI writes between the tags of a task that says nothing of its merge."""


class MergeCommand(NamedTuple):
    """The program of a merge job and its command line."""

    transformation: str
    parameters: str


def merge_command(
    parameters: str, transformation: str, outputs: Sequence[str], files: Collection[int] = ()
) -> MergeCommand:
    """The command of the merge job of consumers with these parameters and this program, which writes `outputs`.

    The site's own transform stands where the program of the consumers does. `files`: what it reads holds outputs of ranges of
    other files, too, and those of these files count.
    """
    program, said = _TRANSFORM.search(parameters), _PARAMETERS.search(parameters)
    if program and program[1].strip() not in ("", UNDEFINED):
        return MergeCommand(program[1].strip(), said[1].strip() if said else "")
    head, slash, _ = transformation.rpartition("/")
    only = ["--files", ",".join(map(str, sorted(files)))] if files else []
    return MergeCommand(f"{head}{slash}{MERGES_EVENTS}", shlex.join([*only, *outputs]))


def without_merge_tags(parameters: str) -> str:
    """The command line of a consumer: what is for its merge job is left out."""
    return _PARAMETERS.sub("", _TRANSFORM.sub("", parameters)).strip()
