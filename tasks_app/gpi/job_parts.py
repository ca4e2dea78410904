"""What a job runs, reads and keeps: applications, files and datasets."""

from __future__ import annotations

import builtins
import inspect
import json
import os
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tasks_app.gpi.components import Component
from tasks_app.gpi.ganga_errors import GangaTypeError, JobError, NotSupported

INPUT_LIST = "__GangaInputData.txt__"
"""A file beside the program with the names of the input files of the subjob, one a line; they are also in $INPUTS."""
RESULT = "result.json"
"""The file into which the result of a PythonFunction goes."""
_CALL = """
import json as _json
with open("call.{k}.json") as _file:
    _given = _json.load(_file)
_result = {name}(*_given["args"], **_given["kwargs"])
with open("{result}", "w") as _file:
    _json.dump(_result, _file)
"""


class File(Component):
    """A file on this machine that goes with the job. Its jobs find it under its last name."""

    fields: ClassVar[Mapping[str, Any]] = {"name": "", "subdir": ""}
    positional = ("name", "subdir")

    @property
    def path(self) -> Path:
        return Path(self.name).expanduser()


class LocalFile(Component):
    """A file of this machine as input, or one that the job writes and that is kept: its name, or a pattern such as *.txt."""

    fields: ClassVar[Mapping[str, Any]] = {"namePattern": "", "localDir": ""}
    positional = ("namePattern", "localDir")

    @property
    def path(self) -> Path:
        return Path(self.localDir).expanduser() / self.namePattern


class Executable(Component):
    """A program with arguments: a command of the machine that runs it, or a File that goes with the job."""

    fields: ClassVar[Mapping[str, Any]] = {"exe": "echo", "args": ["Hello World"], "env": {}}

    def files(self) -> list[Path]:
        """What has to be beside the program. Raises JobError when it is not there."""
        named = [one for one in (self.exe, *self.args) if isinstance(one, File)]
        if isinstance(self.exe, str) and os.sep in self.exe:
            named.append(File(self.exe))  # a path of this machine goes with the job, as Ganga does for Local
        for one in named:
            if not one.path.is_file():
                raise JobError(f"there is no file {one.path} to go with the job")
        return [one.path.resolve() for one in named]

    def words(self, number: int) -> list[str]:
        """The command line in the job's folder."""
        exe = self.exe if isinstance(self.exe, str) else self.exe.name
        carried = isinstance(self.exe, File) or os.sep in exe
        first = f"./{Path(exe).name}" if carried else exe
        return [first, *(one.path.name if isinstance(one, File) else str(one) for one in self.args)]

    def check(self, *, here: bool) -> None:
        """Raises JobError when it cannot run; `here`: on this machine."""
        self.files()
        if not isinstance(self.exe, (str, File)) or not (self.exe if isinstance(self.exe, str) else self.exe.name):
            raise JobError("Executable needs the name of a program in exe")
        if here and isinstance(self.exe, str) and os.sep not in self.exe and shutil.which(self.exe) is None:
            raise JobError(f"there is no program {self.exe} on this machine")

    def extra_files(self, number: int) -> dict[str, str]:
        return {}


class PythonFunction(Component):
    """A function of the script, with arguments that can be written as JSON; what it returns is in result.json.

    The function has to stand for itself: what it needs is imported inside of it.
    """

    fields: ClassVar[Mapping[str, Any]] = {"source": "", "name": "", "args": [], "kwargs": {}, "env": {}}
    positional = ("function", "args", "kwargs")

    def __init__(self, *values: Any, **given: Any) -> None:
        given.update(zip(self.positional, values))  # noqa: B905 - Python 3.9 has no strict
        if "function" in given:
            given["name"], given["source"] = _source(given.pop("function"))
        super().__init__(**given)

    def files(self) -> list[Path]:
        return []

    def check(self, *, here: bool) -> None:
        if not self.source:
            raise JobError("PythonFunction needs a function")
        try:
            json.dumps([self.args, self.kwargs])
        except TypeError as error:
            raise JobError(f"the arguments of {self.name} cannot be written as JSON: {error}") from error

    def words(self, number: int) -> list[str]:
        return ["python3", f"function.{number}.py"]

    def extra_files(self, number: int) -> dict[str, str]:
        given = json.dumps({"args": self.args, "kwargs": self.kwargs})
        call = _CALL.format(k=number, name=self.name, result=RESULT)
        return {f"function.{number}.py": self.source + call, f"call.{number}.json": given}


def _source(function: Any) -> tuple[str, str]:
    """The name of a function and its text. Raises GangaTypeError for one that cannot run elsewhere."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise GangaTypeError("PythonFunction takes a function that is defined with def")
    if function.__code__.co_freevars:
        raise GangaTypeError(f"{function.__name__} uses variables from around it: pass them as arguments")
    outside = [n for n in inspect.getclosurevars(function).globals if not hasattr(builtins, n)]
    if outside:
        raise GangaTypeError(
            f"{function.__name__} uses {outside[0]}, which is outside of it: import it inside, or pass it"
        )
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise GangaTypeError(f"the text of {function.__name__} is not in a file: put it into a script") from error
    if text.startswith("@"):
        raise GangaTypeError(f"{function.__name__} has a decorator, which is not there when it runs")
    return function.__name__, text


class GangaDataset(Component):
    """Files of this machine: LocalFile objects or names, with patterns. Jobs of the backend Local read them."""

    fields: ClassVar[Mapping[str, Any]] = {"files": [], "treat_as_inputfiles": False}
    positional = ("files",)

    def checked(self, name: str, value: Any) -> Any:
        value = super().checked(name, value)
        if name == "files":
            value = [LocalFile(one) if isinstance(one, (str, os.PathLike)) else one for one in value]
            for one in value:
                if not isinstance(one, LocalFile):
                    raise GangaTypeError(f"GangaDataset holds LocalFile objects or names, not {one!r:.60}")
        return value

    def expanded(self) -> list[LocalFile]:
        """One file each, patterns replaced by what they match, in order. Raises JobError for a file that is not there."""
        found: list[LocalFile] = []
        for file in self.files:
            base, pattern = file.path.parent, file.path.name
            matches = sorted(base.glob(pattern)) if set("*?[") & set(pattern) else [file.path]
            for path in matches:
                if not path.is_file():
                    raise JobError(f"there is no input file {path}")
                found.append(LocalFile(path.name, str(path.parent.resolve())))
        return found


LocalDataset = GangaDataset


class CatalogueDataset(Component):
    """A dataset of the site's catalogue, by name; `files` are names of some of its files, in order, none for all."""

    fields: ClassVar[Mapping[str, Any]] = {"name": "", "files": []}
    positional = ("name", "files")


def whole_names(outputs: Sequence[Any]) -> list[str]:
    """The names or patterns of output files. Raises NotSupported for places that are not built."""
    names = []
    for one in outputs:
        if isinstance(one, Component) and not isinstance(one, (LocalFile, File)):
            raise NotSupported(f"outputs of the kind {type(one).__name__} are not supported: use LocalFile")
        name = one if isinstance(one, str) else one.namePattern if isinstance(one, LocalFile) else one.name
        if not name or "/" in name or name in (".", ".."):
            raise JobError(f"an output is the name of a file in the job's folder, not {name!r}")
        names.append(name)
    return names


def sandbox_files(runs: Iterable[Any]) -> dict[str, Path]:
    """What goes with the jobs, by its name there. Raises JobError for a file that is missing, or two of one name."""
    found: dict[str, Path] = {}
    for run in runs:
        given = [one.path if isinstance(one, Component) else File(str(one)).path for one in run.inputfiles]
        for path in [*run.application.files(), *given]:
            if not path.is_file():
                raise JobError(f"there is no file {path} for the input sandbox")
            if found.setdefault(path.name, path.resolve()) != path.resolve():
                raise JobError(f"two files of the job have the name {path.name}")
    return found
