"""What a user sets on a job: names, defaults, and what each takes."""

from __future__ import annotations

from typing import Any

from tasks_app.gpi.backends import Backend
from tasks_app.gpi.components import Component, unknown_attribute
from tasks_app.gpi.ganga_errors import GangaTypeError, NotSupported
from tasks_app.gpi.ganga_splitters import Splitter
from tasks_app.gpi.job_parts import Executable, PythonFunction, whole_names
from tasks_app.gpi.local_backend import Local
from tasks_app.gpi.postprocessing import Merger

DEFAULTS: dict[str, Any] = {
    "name": "",
    "comment": "",
    "application": Executable,
    "inputdata": None,
    "inputfiles": [],
    "outputfiles": [],
    "splitter": None,
    "backend": Local,
    "postprocessors": [],
}
"""What a user sets, and what it is at first: a class stands for a new object of it."""
ALIASES = {"merger": "postprocessors", "inputsandbox": "inputfiles", "outputsandbox": "outputfiles"}
KINDS_OF: dict[str, Any] = {"application": (Executable, PythonFunction), "backend": Backend}
OPTIONAL: dict[str, type[Component]] = {"inputdata": Component, "splitter": Splitter}
LATER = {"do_auto_resubmit": "call resubmit(), which resubmits the failed subjobs", "metadata": "keep notes in comment"}
NOT_COPIED = ("splitter", "inputdata", "inputfiles", "postprocessors")
"""A subjob has what its master has, but for these; its files come from the splitter, its sandbox from the master."""


def checked(name: str, value: Any) -> Any:
    """A value for an attribute of a job, as it is kept. Raises GangaTypeError."""
    if name in ("name", "comment"):
        fits, needs = isinstance(value, str), "a text"
    elif name in KINDS_OF:
        fits, needs = isinstance(value, KINDS_OF[name]), f"an {name} such as {DEFAULTS[name].__name__}()"
    elif name in OPTIONAL:
        fits, needs = value is None or isinstance(value, OPTIONAL[name]), f"a {name}"
    elif name == "postprocessors":
        value = [] if value is None else value if isinstance(value, (list, tuple)) else [value]
        fits, needs = all(isinstance(one, Merger) for one in value), "a merger, or a list of them"
    else:
        fits, needs = isinstance(value, (list, tuple)), "a list of files"
    if not fits:
        raise GangaTypeError(f"{name} takes {needs}, not {value!r:.80}")
    if name == "outputfiles":
        whole_names(value)
    return list(value) if isinstance(value, tuple) else value


def check_name(job: object, name: str) -> None:
    if name in LATER:
        raise NotSupported(f"{name} is not supported: {LATER[name]}")
    if name not in DEFAULTS:
        raise unknown_attribute(job, name, DEFAULTS)
