"""What a definition may say and this site cannot do: refused when the workflow is submitted, with what to do instead. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks_app.domain.failure_reasons import REASONS, is_reason
from tasks_app.params.faults import Faults, shown
from tasks_app.params.filelists import why_not_carried
from tasks_app.workflows.rules.definition import Acquisition, Binary, Definition, Keep, Line, OutputFile
from tasks_app.workflows.rules.stickiness import is_deleted, kept_files

_LOG = re.compile(r"[0-9]+\.log\.tgz")
USUAL_CPU_PERCENT = Binary("x").cpu_percent


def check_runnable(definition: Definition, user: str, faults: Faults) -> None:
    """Add a fault for each wish that would have no effect here; `user` submits it, "" when nobody is known.

    Raises ParamErrors past the most that are told.
    """
    if user and definition.originator not in ("", user):
        faults.add("originator", "right", f"You are {user}, and the originator is who submits: leave it out.")
    for reason in definition.restarts:
        if not is_reason(reason):
            said = f"No failure has this reason. Reasons are {', '.join(REASONS)}, and exit codes such as 'exit 14'."
            faults.add(f"restarts.{reason}", "not available", said)
    kept, datasets = kept_files(definition), dict[str, str]()
    for where, line in _lines(definition):
        if line.early_start:
            said = (
                "A package is one job here, which gets all of its files before it starts: leave it out, and the line starts "
                "when its own files are there, while other lines of the stages before still run."
            )
            faults.add(f"{where}.early_start", "not available", said)
        for p, package in enumerate(line.packages):
            deleted = is_deleted(package, kept)
            for b, binary in enumerate(package.binaries):
                _check_binary(f"{where}.packages[{p}].binaries[{b}]", binary, kept, deleted, datasets, faults)


def _lines(definition: Definition) -> Iterator[tuple[str, Line]]:
    for s, stage in enumerate(definition.stages):
        for n, line in enumerate(stage.lines):
            yield f"stages[{s}].lines[{n}]", line


def _check_binary(
    where: str, binary: Binary, kept: dict[str, Keep], deleted: bool, datasets: dict[str, str], faults: Faults
) -> None:
    if not binary.run:
        said = f"There is no catalogue of programs here, so {shown(binary.software)} needs its command line."
        faults.add(f"{where}.run", "required", said)
    if binary.sam:
        faults.add(f"{where}.sam", "not available", "No site here has a SAM station: leave it out.")
    if binary.cpu_percent != USUAL_CPU_PERCENT:
        said = f"Each package has a core of its own: leave it out, which means {USUAL_CPU_PERCENT}."
        faults.add(f"{where}.cpu_percent", "not available", said)
    for n, file in enumerate(binary.inputs):
        at = f"{where}.inputs[{n}]"
        if file.dataset and (bad := why_not_carried(file.name)):
            faults.add(f"{at}.name", "file name", f"{shown(file.name)} is no file that a job could read: {bad}.")
        if file.size_mb:
            faults.add(f"{at}.size_mb", "not available", "Sizes are those of the files that are there: leave it out.")
        if file.acquisition is Acquisition.PREFETCH and not file.dataset:
            said = "The site fetches it from a dataset: name the dataset."
            faults.add(f"{at}.dataset", "required", said)
        if file.dataset and datasets.setdefault(file.name, file.dataset) != file.dataset:
            said = f"{shown(file.name)} is read from {datasets[file.name]} as well: a base name is one file."
            faults.add(f"{at}.dataset", "one file", said)
    for n, made in enumerate(binary.outputs):
        _check_output(f"{where}.outputs[{n}]", made, kept, deleted, faults)


def _check_output(at: str, file: OutputFile, kept: dict[str, Keep], deleted: bool, faults: Faults) -> None:
    if bad := why_not_carried(f"x.{file.name}"):  # what comes before it is the name of the task
        faults.add(f"{at}.name", "file name", f"{shown(file.name)} cannot be the name of an output: {bad}.")
    if _LOG.fullmatch(file.name):
        faults.add(f"{at}.name", "not available", f"Logs of jobs have names like {shown(file.name)}: choose another.")
    if file.store:
        said = "There is no permanent storage beside the site's: leave it out, and the file is kept."
        faults.add(f"{at}.store", "not available", said)
    if kept[file.name] is Keep.DELETABLE and not deleted:
        said = "Files of a package are deleted together, and some of it are kept: retain this, or write it in another package."
        faults.add(f"{at}.keep", "not available", said)
    if kept[file.name] is Keep.TEMPORARY:
        said = "Nothing is deleted here because space is short: write deletable, which goes with the workflow's end, or retain."
        faults.add(f"{at}.keep", "not available", said)
    if file.size_mb:
        faults.add(f"{at}.size_mb", "not available", "Sizes are measured: leave it out.")
