"""The backend Jedi: a job is one task of the site, and its subjobs are the task's groups of files, with the same numbers.

All subjobs go in one call. What each runs stands in the job's sandbox, so that nothing of it is part of a command line.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape

from tasks_app.gpi.backends import Backend, Piece, State
from tasks_app.gpi.client import ApiError, Client, Conflict, NotFound, Unavailable
from tasks_app.gpi.components import Component
from tasks_app.gpi.ganga_errors import JobError, SiteUnavailable
from tasks_app.gpi.job_parts import INPUT_LIST, CatalogueDataset, sandbox_files, whole_names
from tasks_app.gpi.rules.master_status import COMPLETED

VARIABLE = "SUBJOB"
STREAMS = ("stdout", "stderr")
"""Are outputs of each subjob, as on this machine."""
DRIVER = '''"""Runs what subjobs.json says of this subjob; its outputs stdout and stderr go to the log as well."""
import json, os, shutil, subprocess, sys
number = os.environ["SUBJOB"]
with open("subjobs.json") as told:
    call = json.load(told)[int(number)]
for name, text in call["files"].items():
    with open(name, "w") as file:
        file.write(text)
os.environ.update(call["env"], INPUTS=" ".join(call["inputs"]))
with open("stdout", "wb") as out, open("stderr", "wb") as err:
    try:
        code = subprocess.call(call["words"], stdout=out, stderr=err, stdin=subprocess.DEVNULL)
    except OSError as error:
        err.write(f"{call['words'][0]} cannot be started: {error.strerror}\\n".encode())
        code = 127
for name, to in (("stdout", sys.stdout), ("stderr", sys.stderr)):
    with open(name, "rb") as said:
        shutil.copyfileobj(said, to.buffer)
    to.flush()
sys.exit(code if code >= 0 else 128 - code)
'''
PASSING = ("prepared", "finishing", "passed", "toretry", "aborting", "toabort")
"""States of a task that another follows within seconds."""
ENDS_WITHIN_S = 60.0
FEW = 50
"""So many subjobs are asked for by their numbers; of more, all are read."""


class Jedi(Backend):
    """`server`: its address, else JEDI_SERVER_URL. `attempts`: how often the site tries a subjob by itself. `memory_mb` and
    `cores`: what each subjob needs; `site`: where it has to run, by default anywhere."""

    fields: ClassVar[Mapping[str, Any]] = {"server": "", "attempts": 1, "memory_mb": 0, "cores": 1, "site": ""}
    poll_s = 2.0

    def client(self) -> Client:
        try:
            return Client(self.server or None)
        except ValueError as error:
            raise JobError(str(error)) from error

    def files_of(self, data: Component) -> list[Any]:
        if not isinstance(data, CatalogueDataset):
            raise JobError(
                f"the backend Jedi reads datasets of the catalogue (CatalogueDataset), not {type(data).__name__}: have the "
                "files registered with manage.py register_dataset"
            )
        if data.files:
            return list(data.files)
        return [row["lfn"] for row in _asked(lambda: self.client().catalogue_files(data.name))]

    # Submission

    def plan(self, job: Any, pieces: Sequence[Piece]) -> dict[str, Any]:
        """The task of a job, with its sandbox at the site. Raises JobError for what a task cannot do."""
        runs = [piece.job for piece in pieces]
        if any(path.startswith("backend") for run in runs for path in run.change):
            raise JobError("subjobs of the backend Jedi are one task: its settings are the same for all of them")
        outputs = [_outputs(run) for run in runs]
        inputs = [self._read_by(run) for run in runs]
        datasets = {run.inputdata.name for run in runs if run.inputdata is not None}
        if len(datasets) > 1:
            raise JobError("the subjobs of one job read one dataset")
        if datasets and not all(inputs):
            raise JobError(
                f"subjob {inputs.index([])} has no input file, and all subjobs of the backend Jedi read some"
            )
        site, sandbox = self.client(), _sandbox(pieces, inputs)
        try:
            user = _asked(site.me)["name"]
            archive = _asked(lambda: site.upload(sandbox))
        finally:
            shutil.rmtree(sandbox)
        name = f"user.{user}.{re.sub('[^A-Za-z0-9]+', '-', job.name).strip('-')[:40] or 'job'}.{uuid.uuid4().hex[:12]}"
        return {"key": str(uuid.uuid4()), "params": self._params(name, archive, datasets, inputs, outputs, site.server)}

    def _read_by(self, run: Any) -> list[str]:
        """The files of one subjob. A splitter that gives it none means none, and not all."""
        if run.inputdata is None or ("inputdata" in run.change and not getattr(run.inputdata, "files", True)):
            return []
        return self.files_of(run.inputdata)

    def _params(
        self,
        name: str,
        archive: str,
        datasets: set[str],
        inputs: Sequence[Sequence[str]],
        outputs: Sequence[Sequence[str]],
        server: str,
    ) -> dict[str, Any]:
        line = f'-a {archive} --sourceURL ${{SURL}} -o "${{XML_OUTMAP}}" -p "${{XML_EXESTR}}"'
        items: list[dict[str, Any]] = []
        for dataset in datasets:
            line += ' -i "${IN/T}"'
            items.append(_template("input", dataset, "${IN}"))
        items.append(_template("output", f"{name}.out", f"{name}.$JEDITASKID.${{SN}}"))
        params: dict[str, Any] = {
            "taskName": name,
            "prodSourceLabel": "user",
            "taskType": "anal",
            "transPath": "run_command",
            "maxAttempt": self.attempts,
            "coreCount": self.cores,
            "sourceURL": server,
            "loadXML": _xml(next(iter(datasets), ""), inputs, outputs),
            "log": {**_template("log", f"{name}.log", f"{name}.${{SN}}.log.tgz"), "hidden": False},
            "jobParameters": [{"type": "constant", "value": line}, *items],
        }
        if not datasets:
            params["noInput"] = True
        if self.memory_mb:
            params.update(ramCount=self.memory_mb, ramUnit="MB")
        if self.site:
            params["site"] = self.site
        return params

    def send(self, job: Any, plan: dict[str, Any], count: int) -> list[bool]:
        """Submit what was planned; sent again, it is the same task. Raises JobError when the site refuses it."""
        if "task" not in plan:
            task = _asked(lambda: self.client().submit(plan["params"], key=plan["key"]))
            plan["task"] = task.id
            del plan["params"]
        return [True] * count

    # What became of it, and acts

    def states(self, job: Any, pieces: Sequence[Piece], place: Path) -> list[State]:
        wanted = [piece.number for piece in pieces]
        found = _asked(lambda: self.client().subjobs(_task(job), wanted if len(wanted) <= FEW else None))
        rows = {row["number"]: row for row in found["subjobs"]}
        return [State(r["status"], r["exit_code"], r["error"], tuple(r["jobs"])) for r in map(rows.__getitem__, wanted)]

    def kill(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        numbers = [piece.number for piece in pieces]
        if len(numbers) == job.active():
            _asked(lambda: self.client().command(_task(job), "kill"))
        else:
            _asked(lambda: self.client().subjob_act(_task(job), "kill", numbers))

    def check_resubmission(self, statuses: Sequence[str]) -> None:
        if COMPLETED in statuses:
            raise JobError("what is completed is not run again on the site: submit a copy of the subjob")

    def resubmit(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        site, task, numbers = self.client(), _task(job), [piece.number for piece in pieces]
        end, before = time.monotonic() + ENDS_WITHIN_S, ""
        while True:
            try:
                _asked(lambda: site.subjob_act(task, "resubmit", numbers))
                return
            except JobError:
                # All subjobs may have ended a moment before their task has.
                status = _asked(lambda: site.progress(task)).status
                if (status not in PASSING and status == before) or time.monotonic() > end:
                    raise
                before = status
            time.sleep(self.poll_s / 2)

    def outputs(self, job: Any, pieces: Sequence[Piece], place: Path) -> dict[int, Path]:
        """Fetch what is not here yet."""
        absent = {piece.number: piece for piece in pieces if _text(piece.folder / "fetched") != str(piece.attempt)}
        if absent:
            site = self.client()
            numbers = sorted(absent)
            found = _asked(lambda: site.subjobs(_task(job), numbers, outputs=True))
            for row in found["subjobs"]:
                _fetch(site, absent[row["number"]], row)
        return {piece.number: piece.folder / "output" for piece in pieces}


def _fetch(site: Client, piece: Piece, row: Mapping[str, Any]) -> None:
    folder = piece.folder / "output"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mark = f".{VARIABLE}{piece.number}."
    for output in row["outputs"]:
        path = _asked(lambda output=output: site.fetch(output, folder))
        path.replace(folder / path.name.partition(mark)[2])
    (piece.folder / "fetched").write_text(str(piece.attempt))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _task(job: Any) -> int:
    return int(job.store.job(job.id)["backend"]["task"])


def _asked(call: Any) -> Any:
    """What the site answers. Raises SiteUnavailable when it does not, JobError with its sentence when it refuses."""
    try:
        return call()
    except Unavailable as error:
        raise SiteUnavailable(str(error)) from error
    except (ApiError, NotFound, Conflict) as error:
        raise JobError(str(error)) from error


def _outputs(run: Any) -> list[str]:
    names = whole_names(run.outputfiles)
    wild = next((name for name in names if set("*?[") & set(name)), None)
    if wild is not None:
        raise JobError(f"the site has to know the names of outputs: {wild} is a pattern")
    return list(dict.fromkeys([*STREAMS, *names]))


def _sandbox(pieces: Sequence[Piece], inputs: Sequence[Sequence[str]]) -> Path:
    """A folder with all that the subjobs need. Raises JobError for a file that is not there, or two of one name."""
    folder = Path(tempfile.mkdtemp(prefix="gpi-"))
    try:
        sources = sandbox_files(piece.job for piece in pieces)
        calls = []
        for piece, names in zip(pieces, inputs):  # noqa: B905 - Python 3.9 has no strict
            run = piece.job
            run.application.check(here=False)
            extra = run.application.extra_files(piece.number)
            words = run.application.words(piece.number)
            if run.inputdata is not None:
                extra[INPUT_LIST] = "".join(f"{name}\n" for name in names)
            calls.append({"words": words, "env": run.application.env, "files": extra, "inputs": list(names)})
        for name, path in sources.items():
            shutil.copy2(path, folder / name)
        (folder / "gpi_driver.py").write_text(DRIVER)
        (folder / "subjobs.json").write_text(json.dumps(calls, separators=(",", ":")))
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder


def _xml(dataset: str, inputs: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> str:
    """The groups of the task: group k is subjob k, and its number is in the environment of its command."""
    common = [name for name in outputs[0] if all(name in names for names in outputs)]
    text = "<submission><command>python3 gpi_driver.py</command>"
    text += "".join(f"<output>{escape(name)}</output>" for name in common)
    for number, (files, names) in enumerate(zip(inputs, outputs)):  # noqa: B905 - of one length
        text += f'<job><option name="{VARIABLE}" prepend="true" forward="true">{number}</option>'
        if files:
            named = "".join(f"<file>{escape(file)}</file>" for file in files)
            text += f"<inds><name>{escape(dataset)}</name>{named}</inds>"
        text += "".join(f"<output>{escape(name)}</output>" for name in names if name not in common) + "</job>"
    return text + "</submission>"


def _template(kind: str, dataset: str, value: str) -> dict[str, Any]:
    return {"type": "template", "param_type": kind, "dataset": dataset, "value": value, "hidden": True}
