"""A task in a few words: a shell command, an input, outputs and numbers, as the dictionary that is submitted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tasks_app.params.commandline import FILES
from tasks_app.params.faults import Faults
from tasks_app.params.keys import KEYS, NAME
from tasks_app.params.kinds import Key, check_value

TRANSFORM = "run_command"
NUMBER = "${SN}"
OUT_DS = Key("out_ds", "text", "Prefix of the output datasets", longest=255, form=NAME)
_LOCAL = re.compile(r"[A-Za-z0-9*?][A-Za-z0-9_.*?-]{0,100}")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to run.

    `command`: a shell command; %IN stands for the names of the inputs with commas, ${SN} for the number of the job.
    `name`: of the task; without it that of out_ds. Its outputs go to the datasets <out_ds>.<local name> (* and ? left out),
    logs to <out_ds>.log, and without out_ds to those of the task's name. `outputs`: local names of files that the command
    writes; a pattern packs all that it matches. Without in_ds there are `jobs` jobs; with one, each job gets `files_per_job`
    files, or as many as the site thinks good. `more`: further task parameters, which win.
    """

    command: str
    name: str
    in_ds: str = ""
    out_ds: str = ""
    outputs: Sequence[str] = ()
    jobs: int | None = None
    files_per_job: int | None = None
    memory_mb: int | None = None
    cores: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def dictionary(wish: Wish) -> dict[str, Any]:
    """The task parameters of a wish. Raises ParamErrors, which name the fields of the wish."""
    _check(wish)
    base = wish.out_ds or wish.name
    words = [f'-p "{quote(wish.command, safe="").replace(quote(NUMBER, safe=""), NUMBER)}"']
    hidden: list[dict[str, Any]] = []
    if wish.in_ds:
        words.append('-i "${IN/T}"')
        hidden.append(_template("input", wish.in_ds, "${IN}"))
    if wish.outputs:
        names = ", ".join(f"'{local}': '${{OUTPUT{n}}}'" for n, local in enumerate(wish.outputs))
        words.append(f'-o "{{{names}}}"')
    for local in wish.outputs:
        plain = re.sub(r"[*?]+", "", local).strip(".-_") or "files"
        ending = ".tgz" if plain != local else ""
        hidden.append(_template("output", f"{base}.{plain}", f"{base}.{NUMBER}.{plain}{ending}"))
    params: dict[str, Any] = {
        "taskName": wish.name or wish.out_ds,
        "prodSourceLabel": "user",
        "taskType": "anal",
        "transPath": TRANSFORM,
        "log": {"type": "template", "param_type": "log", "dataset": f"{base}.log", "value": f"{base}.{NUMBER}.log.tgz"},
        "jobParameters": [{"type": "constant", "value": " ".join(words)}, *hidden],
    }
    if not wish.in_ds:
        params |= {"noInput": True, "nEvents": wish.jobs or 1, "nEventsPerJob": 1}
    elif wish.files_per_job:
        params["nFilesPerJob"] = wish.files_per_job
    if wish.memory_mb:
        params |= {"ramCount": wish.memory_mb, "ramUnit": "MB"}
    if wish.cores is not None:
        params["coreCount"] = wish.cores
    return params | dict(wish.more)


def _check(wish: Wish) -> None:
    faults = Faults()
    if not wish.command.strip():
        faults.add("exec", "required", "Give a command.")
    if not (wish.out_ds or wish.name):
        faults.add("name", "required", "The task needs a name, or --out-ds.")
    if wish.name:
        check_value(KEYS["taskName"], wish.name, "name", faults)
    if wish.out_ds:
        # Alone it names the task as well.
        check_value(OUT_DS if wish.name else KEYS["taskName"], wish.out_ds, "out_ds", faults)
    if wish.in_ds and wish.jobs is not None:
        faults.add(
            "n_jobs", "combination", "With an input, the number of jobs follows from its files; use --files-per-job."
        )
    if not wish.in_ds and "jobParameters" not in wish.more and FILES.search(wish.command):
        faults.add("in_ds", "required", "%IN in the command stands for the files of an input: name its dataset.")
    if not wish.in_ds and wish.files_per_job is not None:
        faults.add("files_per_job", "combination", "Without an input there are no files; use --n-jobs.")
    for name, value in (("n_jobs", wish.jobs), ("files_per_job", wish.files_per_job), ("memory_mb", wish.memory_mb)):
        if value is not None and value < 1:
            faults.add(name, "range", f"At least 1 is needed, not {value}.")
    for local in wish.outputs:
        if not _LOCAL.fullmatch(local):
            faults.add("output", "name", f"{local[:100]!r} is not a plain file name or pattern.")
    if len(set(wish.outputs)) < len(wish.outputs):
        faults.add("output", "unique", "An output is named twice.")
    faults.raise_if_any()


_FROM = {
    "nFilesPerJob": "files_per_job",
    "ramCount": "memory_mb",
    "ramUnit": "memory_mb",
    "coreCount": "cores",
    "nEvents": "n_jobs",
    "nEventsPerJob": "n_jobs",
}
_PART = re.compile(r"jobParameters\[(\d+)\](\.dataset)?")


def origin_of(field: str, wish: Wish) -> str:
    """What of a wish a field of its dictionary was made from: a field of the wish, or the key of `more`; "" for nothing.

    `field` is a path such as `jobParameters[1].dataset`.
    """
    top = re.split(r"[.\[]", field, maxsplit=1)[0]
    named = "name" if wish.name else "out_ds"
    if top in wish.more:
        return top
    if top in ("taskName", "log"):
        return named if top == "taskName" or not wish.out_ds else "out_ds"
    part = _PART.match(field)
    if part is None:
        return _FROM.get(top, "")
    if part[1] == "0":
        return "exec"
    if wish.in_ds and part[1] == "1":
        return "in_ds"
    return ("out_ds" if wish.out_ds else named) if part[2] else "output"


def _template(kind: str, dataset: str, value: str) -> dict[str, Any]:
    return {"type": "template", "param_type": kind, "dataset": dataset, "value": value, "hidden": True}
