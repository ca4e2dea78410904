"""The lists of the map: what a newcomer has in hand, and the files to which it leads. Made from the tables of the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.apps import apps
from django.contrib import admin
from django.core.management import get_commands, load_command_class
from django.urls import URLPattern, URLResolver, get_resolver

from jedisite.agents import registry
from tasks_app.domain.states import DatasetStatus, FileStatus, JobStatus, TaskStatus
from tasks_app.labs.mapping import code_files
from tasks_app.params.keys import KEYS
from tasks_app.params.split_codes import CODES
from tasks_app.web.help.machines import CHAPTERS

_TABLES: Final = ("tasks_app/params/keys.py", "tasks_app/params/split_codes.py", "tasks_app/api/v2/examples.py")
_FACES: Final = (
    "tasks_app/labs/",
    "tasks_app/gpi/",
    "tasks_app/web/",
    "tasks_app/api/",
    "tasks_app/admin/",
    "tasks_app/lists/",
)
_STATES: Final = (
    "tasks_app/domain/states.py",
    *_FACES,
    "tasks_app/audit/",
    "tasks_app/drawing/",
    "tasks_app/transforms/",
)
_MACHINES: Final = (TaskStatus, JobStatus, DatasetStatus, FileStatus)
_PARAMETERS_READ: Final = ("tasks_app/params/", "tasks_app/refining/", "tasks_app/submission/")
"""Where a plain word such as `site` is the parameter of that name."""
_PANDA: Final = "tasks_app.api.panda"


class Section(NamedTuple):
    title: str
    about: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Address(NamedTuple):
    """A route, and what answers there: module, name, and which method of a view set."""

    route: str
    module: str
    name: str
    methods: str


def sections() -> Iterator[Section]:
    known = sorted(_addresses(get_resolver().url_patterns))
    pages = [one for one in known if not one.route.startswith("/api/") and not one.module.startswith(_PANDA)]
    yield Section(
        "Pages",
        "By address; `tasks_app/web/urls.py` and `jedisite/urls.py` have the routes.",
        ("address", "function", "template"),
        [(_code(one.route), _place(one), _list(_templates(one))) for one in pages],
    )
    yield Section(
        "Pages of the admin",
        "`/admin/<app>/<model>/`; `docs/decisions/004-documents-and-system.md` says what stands there.",
        ("address", "class"),
        sorted(_admin_pages()),
    )
    yield Section(
        "Resources of the API",
        "`tasks_app/api/v2/urls.py` has the routes; `/api/docs/` describes them.",
        ("address", "view", "method: function"),
        [(_code(one.route), _place(one), one.methods) for one in known if one.route.startswith("/api/v2/")],
    )
    yield Section(
        "PanDA's calls",
        "`@call` above a function gives its address (`tasks_app/api/panda/calls.py`).",
        ("address", "function"),
        [(_code(one.route), _place(one)) for one in known if one.module.startswith(_PANDA)],
    )
    yield Section("Commands of manage.py", "", ("command", "file", "what it does"), list(_commands()))
    yield Section(
        "Agents",
        "`@agent` beside a function makes it one: `jedisite/agents/registry.py`.",
        ("agent", "function", "every", "what it does"),
        [
            (_code(name), _file(spec.run.__module__, spec.run.__name__), f"{spec.period_s:g} s", spec.title)
            for name, spec in sorted(registry.REGISTRY.items())
            if spec.run.__module__.startswith(code_files.APPS)
        ],
    )
    yield Section(
        "Task parameters",
        "`tasks_app/params/keys.py` is the table of all; `code` is the split-rule code that a parameter becomes, and where the "
        "work reads it. Files are those that name the parameter.",
        ("parameter", "code", "files"),
        list(_parameters()),
    )
    yield Section(
        "Codes of the split rule",
        "`tasks_app/params/split_codes.py` is the table, `tasks_app/params/to_splitrule.py` makes the rule, "
        "`tasks_app/params/splitrule.py` reads it.",
        ("code", "what it says", "files that read or set it"),
        list(_split_codes()),
    )
    for chapter in CHAPTERS:
        yield Section(
            chapter.machine.title,
            "`tasks_app/domain/states.py` has the moves. Files are those that name the state as a member of its enumeration"
            ", or in quotes inside of SQL when no other table has a state of that name.",
            ("state", "meaning", "may become", "files"),
            list(_states(chapter.meaning, chapter.machine.moves)),
        )
    yield Section(
        "Refusal codes",
        "The files that have them; `jedisite/refusals.py` is the registry, and `/help/codes/` says what each means. "
        "A code is the name of its constant in small letters: a search for the constant finds who refuses with it.",
        ("defined in", "codes of"),
        list(_refusal_codes()),
    )
    yield Section("Tables", "", ("table", "model", "file"), sorted(_models()))


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _list(paths: Iterable[str]) -> str:
    return ", ".join(map(_code, sorted(set(paths))))


def _file(module: str, name: str = "") -> str:
    """Where a thing of ours is defined; a thing of a library has its dotted name."""
    if not module.startswith(code_files.APPS):
        return _code(f"{module}.{name}")
    path = module.replace(".", "/") + ".py"
    if not (code_files.ROOT / path).exists():
        path = module.replace(".", "/") + "/__init__.py"
    return f"{_code(path)} {_code(name)}" if name else _code(path)


def _place(address: Address) -> str:
    return _file(address.module, address.name)


def _templates(address: Address) -> list[str]:
    path = address.module.replace(".", "/") + ".py"
    return code_files.templates(path, address.name) if address.module.startswith(code_files.APPS) else []


def _addresses(patterns: Sequence[URLPattern | URLResolver], above: str = "/") -> Iterator[Address]:
    for pattern in patterns:
        route = above + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if route != "/admin/":
                yield from _addresses(pattern.url_patterns, route)
            continue
        view: Any = pattern.callback
        seen = getattr(view, "cls", None) or getattr(view, "view_class", None) or inspect.unwrap(view)
        actions: Mapping[str, str] = getattr(view, "actions", None) or {}
        methods = ", ".join(
            f"{method.upper()}: {_code(name)}" for method, name in sorted(actions.items()) if method != "head"
        )
        yield Address(route, seen.__module__, getattr(seen, "__name__", type(seen).__name__), methods)


def _admin_pages() -> Iterator[tuple[str, ...]]:
    admin.autodiscover()
    for model, page in admin.site._registry.items():
        meta, made = model._meta, type(page)
        yield _code(f"/admin/{meta.app_label}/{meta.model_name}/"), _file(made.__module__, made.__name__)


def _commands() -> Iterator[tuple[str, ...]]:
    for name, app in sorted(get_commands().items()):
        if str(app).startswith(code_files.APPS):
            command = load_command_class(str(app), name)
            yield _code(name), _file(type(command).__module__), command.help


def _parameters() -> Iterator[tuple[str, ...]]:
    used = code_files.where_used("texts", (*_TABLES, *_FACES))
    for name, key in sorted(KEYS.items(), key=lambda item: item[0].lower()):
        paths = (path for path in used[name] if not name.islower() or path.startswith(_PARAMETERS_READ))
        yield _code(name), _code(key.code) if key.code else "", _list(paths)


def _split_codes() -> Iterator[tuple[str, ...]]:
    texts, rules = (code_files.where_used(kind, (*_TABLES, *_FACES)) for kind in ("texts", "split_codes"))
    for name, code in sorted(CODES.items()):
        paths = (path for path in texts[name] + rules[name] if path.startswith("tasks_app/"))
        yield _code(name), code.meaning, _list(paths)


def _states(meaning: Mapping[str, str], moves: Mapping[Any, Iterable[Any]]) -> Iterator[tuple[str, ...]]:
    members, quoted = (code_files.where_used(kind, _STATES) for kind in ("members", "quoted"))
    for state, nexts in moves.items():
        paths = members[f"{type(state).__name__}.{state.name}"]
        if sum(str(state) in set(map(str, machine)) for machine in _MACHINES) == 1:
            paths = paths + [path for path in quoted[str(state)] if path.startswith("tasks_app/")]
        yield _code(str(state)), meaning[str(state)], ", ".join(sorted(map(str, nexts))), _list(paths)


def _refusal_codes() -> Iterator[tuple[str, ...]]:
    for path in code_files.all_files():
        if code_files.constants_of_codes(path):
            yield _code(path), code_files.first_line(path)


def _models() -> Iterator[tuple[str, ...]]:
    for model in apps.get_models():
        if model.__module__.startswith(code_files.APPS):
            yield _code(model._meta.db_table), _code(model.__name__), _file(model.__module__)
