"""What is done with the outputs of subjobs once all are there: mergers."""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tasks_app.gpi.components import Component
from tasks_app.gpi.ganga_errors import JobError
from tasks_app.gpi.rules.master_status import COMPLETED


class Merger(Component, ABC):
    """Merges the files of each name. With `ignorefailed` those of the subjobs that are completed, else all must be."""

    fields: ClassVar[Mapping[str, Any]] = {"files": [], "ignorefailed": False, "overwrite": False}

    def merge(self, jobs: Iterable[Any], outputdir: str | os.PathLike[str]) -> list[Path]:
        """Merge the outputs of jobs, in their order, into a folder. Raises JobError, and then makes no file."""
        given = list(jobs)
        done = [job for job in given if job.status == COMPLETED]
        if not self.files:
            raise JobError(f"{type(self).__name__} needs the names of the files to merge")
        if len(done) < len(given) and not self.ignorefailed:
            other = next(job for job in given if job not in done)
            raise JobError(
                f"job {other.written_id} is {other.status}, so nothing is merged: set ignorefailed to leave it out"
            )
        if not done:
            raise JobError("no job is completed, so there is nothing to merge")
        target = Path(outputdir).expanduser()
        target.mkdir(parents=True, exist_ok=True)
        plans = [self._plan(str(getattr(file, "namePattern", file)), done, target) for file in self.files]
        for sources, path in plans:
            part = path.with_name(f".{path.name}.part")
            self.combine(sources, part)
            os.replace(part, path)
        return [path for _, path in plans]

    def _plan(self, name: str, done: list[Any], target: Path) -> tuple[list[tuple[str, Path]], Path]:
        path = target / self.target_name(name)
        if path.exists() and not self.overwrite:
            raise JobError(f"{path} exists already: set overwrite to replace it")
        sources = [(job.written_id, job.outputdir / name) for job in done]
        for number, source in sources:
            if not source.is_file():
                raise JobError(f"job {number} has no output {name}")
        return sources, path

    def target_name(self, name: str) -> str:
        return name

    @abstractmethod
    def combine(self, sources: list[tuple[str, Path]], target: Path) -> None:
        """Write one file from those of the jobs, which stand with their numbers. Raises JobError."""


class TextMerger(Merger):
    """One text behind the other, each after a line that names its job. With `compress` the result is a .gz file."""

    fields: ClassVar[Mapping[str, Any]] = {**Merger.fields, "compress": False}

    def target_name(self, name: str) -> str:
        return f"{name}.gz" if self.compress else name

    def combine(self, sources: list[tuple[str, Path]], target: Path) -> None:
        with gzip.open(target, "wb") if self.compress else target.open("wb") as merged:
            for number, source in sources:
                merged.write(f"# job {number}\n".encode())
                with source.open("rb") as opened:
                    shutil.copyfileobj(opened, merged)


class CustomMerger(Merger):
    """A module of the user's, a file, with `mergefiles(file_list, output_file)`; what it returns says whether it went well."""

    fields: ClassVar[Mapping[str, Any]] = {**Merger.fields, "module": ""}

    def combine(self, sources: list[tuple[str, Path]], target: Path) -> None:
        path = Path(getattr(self.module, "name", self.module)).expanduser()
        spec = importlib.util.spec_from_file_location("custom_merger", path)
        if not path.is_file() or spec is None or spec.loader is None:
            raise JobError(f"there is no module {path} for CustomMerger")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not module.mergefiles([str(source) for _, source in sources], str(target)) or not target.exists():
            raise JobError(f"{path} could not merge {sources[0][1].name}")
