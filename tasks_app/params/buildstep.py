"""What a task asks of its build step, and how the build job and its library are named. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.params.shellwords import words_of
from tasks_app.worker_node.pilot.safe_names import sandbox_of

LABEL = "panda"
TRANSFORM = "build_command"
PRIORITY = 2_000
"""Builds go before the jobs that wait for them."""
CORES = 1
RAM_MB_A_CORE = 2_000
KEPT = timedelta(days=7)
"""An older library is built anew."""
FAILED_BUILDS = 3
"""So many failed builds, and none that went well, break the task."""
_LIBRARY = re.compile(r"panda\.\d{10}\.\d{6}\.lib\._\d{6,}")
_COMMAND = " -- "
"""What follows is the user's own."""
_STEPS = {"buildSpec": TRANSFORM, "mergeSpec": "merge_command", "preproSpec": "preprocess_command"}
"""Steps with command lines of their own, with their usual transforms."""
OVERWRITABLE = ".__ow__"
"""The name of a sandbox that ends so may be given again by its owner; the newest file counts."""
KEPT_TEXT = 10_000
"""Characters of a command line that is kept with the answer; longer ones would fill the memory."""
_ARCHIVES = (".gz", ".tgz", ".tar")
_ARCHIVE_OPTION = re.compile(r"(?<!\S)(-a\s+)(\"[^\"]*\"|'[^']*'|\S+)")


class BadBuildError(ValueError):
    """The build step can never be run as it was submitted; a sentence for the task's owner."""


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One task's build step. `mark` is the same for steps that make the same library.

    `sandbox` is a dataset and a file when the sources come through data management, else None.
    """

    label: str
    transformation: str
    archive: str
    source_url: str
    template: JobParamsTemplate
    mark: str
    sandbox: tuple[str, str] | None = None

    def command_line(self, library: str) -> str:
        """The parameters of the build job. Raises UnresolvedPlaceholder."""
        values: dict[str, str | int] = {"OUT": library, "LIB": library}
        if self.archive:
            values["IN"] = self.archive
        if self.source_url:
            values["SURL"] = self.source_url
        return self.template.render({}, values)


@dataclass(frozen=True, slots=True)
class Library:
    """What run jobs read: `ready` when its job has made it, else they wait for job `job_id`."""

    dataset_id: int
    dataset: str
    file_id: int
    lfn: str
    scope: str | None
    endpoint: str | None
    job_id: int
    ready: bool
    size: int | None = None
    checksum: str | None = None
    guid: str | None = None
    surl: str | None = None

    @property
    def waits(self) -> str:
        """Why jobs that need it are not started; empty when it is ready."""
        return "" if self.ready else f"waits for the library that job {self.job_id} builds"


def build_step(raw: Mapping[str, Any]) -> BuildStep | None:
    """The build step that submitted parameters ask for; None without one. Raises BadBuildError, BadTemplate.

    `fixedSandbox` takes the place of the archive that the step names.
    """
    spec = raw.get("buildSpec")
    if not spec:
        return None
    sandbox = via_data_management(spec.get("tarBallViaDDM"), "buildSpec.tarBallViaDDM")
    archive = str(raw.get("fixedSandbox") or spec.get("archiveName") or (sandbox[1] if sandbox else ""))
    text, path = str(spec["jobParameters"]), str(spec.get("transPath") or TRANSFORM)
    url = str(raw.get("sourceURL") or "")
    mark = hashlib.sha256("\n".join((archive, url, text, path, str(sandbox))).encode()).hexdigest()[:32]
    template = compile_template(text, streams=("IN", "OUT"))
    label = str(spec.get("prodSourceLabel") or LABEL)
    return BuildStep(label, path, archive, url, template, f"build={mark}", sandbox)


def via_data_management(text: Any, name: str = "tarBallViaDDM") -> tuple[str, str] | None:
    """`dataset:file`; a scope before the dataset is part of its name. None without one. Raises BadBuildError."""
    if not text:
        return None
    dataset, colon, lfn = str(text).rpartition(":")
    if not colon or not dataset or not lfn:
        raise BadBuildError(f"{name} must be dataset:file, not {str(text)[:80]!r}")
    return dataset, lfn


def archives_of(raw: Mapping[str, Any], command_line: str) -> list[str]:
    """The names of the sandboxes that jobs of a task fetch, in all its steps: what pilots find in their command lines.

    Without those that come through data management.
    """
    build = raw.get("buildSpec") or {}
    fixed = raw.get("fixedSandbox")
    archive = "" if build.get("tarBallViaDDM") else str(fixed or build.get("archiveName") or "")
    found = [archive]
    steps = [(raw, "run_command", with_sandbox(command_line, fixed))]
    for key, usual in _STEPS.items():
        spec = raw.get(key) or {}
        steps.append((spec, usual, str(spec.get("jobParameters") or "")))
    for spec, usual, text in steps:
        program = str(spec.get("transPath") or usual).rpartition("/")[2]
        name = _archive_in(program, text)
        # Other transforms than the site's may mean something else by -a.
        if program.endswith("_command") or name.removesuffix(OVERWRITABLE).endswith(_ARCHIVES):
            found.append(name)
    # Only the last part of a path counts; ${IN} of a build step stands for its archive.
    brought = ("", "${IN}", str(raw.get("tarBallViaDDM") or "").rpartition(":")[2])
    return list(dict.fromkeys(name.rpartition("/")[2] for name in found if name not in brought))


def _archive_in(program: str, text: str) -> str:
    if "-a" not in text and "-i" not in text:
        return ""
    return (_archive_of_short if len(text) <= KEPT_TEXT else _archive_of)(program, text)


def _archive_of(program: str, text: str) -> str:
    try:
        words = words_of(text)
    except ValueError:  # such jobs fail
        words = text.split()
    return sandbox_of([f"./{program}", *words])


_archive_of_short = lru_cache(maxsize=256)(_archive_of)  # the generator asks at each turn of a task, more than once


def with_sandbox(command_line: str, sandbox: str | None) -> str:
    """The command line with another sandbox after `-a`."""
    if not sandbox:
        return command_line
    options, dashes, command = command_line.partition(_COMMAND)
    return _ARCHIVE_OPTION.sub(lambda found: found[1] + sandbox, options) + dashes + command


def dataset_name(task_id: int, now: datetime) -> str:
    """`panda.<mmddHHMMSS>.<microseconds>.lib._<task id>`."""
    return f"panda.{now:%m%d%H%M%S}.{now:%f}.lib._{task_id:06d}"


def is_library(dataset: str) -> bool:
    """Whether a dataset of that name holds a library, and not sources that a build job reads."""
    return _LIBRARY.fullmatch(dataset) is not None


def ram_mb(most_mb: int) -> int:
    """Memory of the build job at a queue whose slots have so much; 0 is no limit."""
    wanted = RAM_MB_A_CORE * CORES
    return min(wanted, most_mb) if most_mb else wanted


__all__ = [
    "FAILED_BUILDS",
    "KEPT",
    "OVERWRITABLE",
    "PRIORITY",
    "BadBuildError",
    "BuildStep",
    "Library",
    "archives_of",
    "build_step",
    "dataset_name",
    "ram_mb",
    "via_data_management",
    "with_sandbox",
]
