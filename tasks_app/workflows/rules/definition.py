"""The records of a workflow's definition: job, stage, line, package, binary, and the files of a binary. Pure.

Nothing in them says what waits for what: a package that reads a file waits for the package that writes a file of that name.
Numbers of stages, lines, packages and binaries are their places in the record above, counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

NAMED_BINARIES: Final = 3
"""Of a package, in lists and pictures."""


class Acquisition(StrEnum):
    """How a file that no package writes comes to the binary."""

    NONE = "none"
    """It is there."""
    SELF = "self"
    """The binary fetches it when it starts."""
    PREFETCH = "pre-fetch"
    """The site fetches it before the package is launched."""


class Keep(StrEnum):
    """What becomes of a file when nobody needs it any more."""

    DELETABLE = "deletable"
    TEMPORARY = "temporary"
    """It stays until space is short."""
    RETAIN = "retain"
    """It stays until somebody deletes it."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """`name` is the base name, without address or folder. `dataset` says where a file is found that no package writes."""

    name: str
    acquisition: Acquisition = Acquisition.NONE
    keep: Keep = Keep.DELETABLE
    dataset: str = ""
    size_mb: int = 0


@dataclass(frozen=True, slots=True)
class OutputFile:
    """`forward` makes the file available to other packages, `store` puts it into permanent storage."""

    name: str
    forward: bool = True
    store: bool = False
    keep: Keep = Keep.RETAIN
    size_mb: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """One program. `run` is its command line, `cpu_percent` what it needs of a core, `sam` whether it needs a SAM station."""

    software: str
    version: str = ""
    run: str = ""
    sam: bool = False
    cpu_percent: int = 99
    work_mb: int = 0
    run_time_s: int = 0
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[OutputFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Package:
    """The unit that is scheduled and restarted. `script` runs its binaries, whose commands are the script's arguments.

    `nodes`: it runs on one of these only; `not_nodes`: on none of these. `notify`: each failure is told to the originator.
    """

    binaries: tuple[Binary, ...]
    script: str = ""
    nodes: tuple[str, ...] = ()
    not_nodes: tuple[str, ...] = ()
    notify: bool = True

    @property
    def software(self) -> str:
        """The names of its binaries, each once and the first three: `reco, store` or `a, b, c and 2 more`."""
        names = list(dict.fromkeys(binary.software for binary in self.binaries))
        more = f" and {len(names) - NAMED_BINARIES} more" if len(names) > NAMED_BINARIES else ""
        return ", ".join(names[:NAMED_BINARIES]) + more

    def inputs(self) -> Iterator[InputFile]:
        """The files that come from outside of the package, each name once, as the first binary that reads it says."""
        own = {file.name for binary in self.binaries for file in binary.outputs}
        seen = dict[str, InputFile]()
        for binary in self.binaries:
            for file in binary.inputs:
                if file.name not in own:
                    seen.setdefault(file.name, file)
        return iter(seen.values())

    def outputs(self) -> Iterator[OutputFile]:
        return (file for binary in self.binaries for file in binary.outputs)


@dataclass(frozen=True, slots=True)
class Line:
    """Packages that run one after another. With `early_start` the first does not wait for the files that it reads."""

    packages: tuple[Package, ...]
    early_start: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A job as the researcher sees it. `restarts`: how often a package is restarted by itself after failing for a reason."""

    name: str
    stages: tuple[Stage, ...]
    originator: str = ""
    priority: int = 0
    hold: bool = False
    restarts: Mapping[str, int] = field(default_factory=dict)

    def packages(self) -> Iterator[tuple[int, int, int, Line, Package]]:
        """Stage, line and place in the line, counted from 1, of each package in order, with its line."""
        for stage_number, stage in enumerate(self.stages, 1):
            for line_number, line in enumerate(stage.lines, 1):
                for sequence, package in enumerate(line.packages, 1):
                    yield stage_number, line_number, sequence, line, package
