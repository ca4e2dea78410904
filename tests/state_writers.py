"""Where code writes states of stored jobs, tasks, datasets and files, found by reading it: statements, and what Django saves."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.lock_places import place_of

ROOT = Path(__file__).resolve().parents[1]
APPS = ("jedisite", "brokerage_app", "tasks_app", "events_app")
COLUMNS = {
    "jobs": "jobstatus",
    "jedi_tasks": "status",
    "jedi_datasets": "status",
    "jedi_dataset_contents": "status",
    "job_files": "status",
}
WITH_MODELS = ("tasks_app", "events_app")
"""The apps that may import the models of these tables."""
MODELS = ("Task", "Dataset", "File", "JobColumns", "Job", "JobArchive", "JobFile")
_UPDATE = re.compile(
    r"\bUPDATE\s+(?:ONLY\s+)?(\w+|\{\})(?:\s+(?:AS\s+)?(?!SET\b)\w+)?\s+SET\b|\bINSERT\s+INTO\s+(\w+)\b.*?\bDO\s+UPDATE\s+SET\b",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(r"\b(?:WHERE|FROM|RETURNING)\b", re.IGNORECASE)


def writers(apart: frozenset[str]) -> set[str]:
    """`path:place` of each writer outside the rooms `apart`; the second of a place is called `path:place 2`."""
    found: Counter[str] = Counter()
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            name = path.relative_to(ROOT)
            if not apart & set(name.parts):
                wrote = writers_in(path.read_text(), saves=app in WITH_MODELS)
                found.update(f"{name.as_posix()}:{place}" for place in wrote)
    return {f"{place} {n}" if n > 1 else place for place, count in found.items() for n in range(1, count + 1)}


@cache
def writers_in(source: str, *, saves: bool = True) -> list[str]:
    """The functions and constants of a file, each as often as it writes such a state, or only as its statements do."""
    named = any(column in source for column in COLUMNS.values())
    return list(_of(ast.parse(source), "", saves)) if named else []


def _of(node: ast.AST, place: str, saves: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = place_of(child, place)
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        text = _text(child)
        if text is not None:
            yield from (inner for _ in range(_statements(text)))
            continue
        if saves and _saves(child, inner):
            yield inner
        yield from _of(child, inner, saves)


def _text(node: ast.AST) -> str | None:
    """A string, with {} in the place of what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _statements(text: str) -> int:
    """How many statements in a text set such a state; one whose table is put in might."""
    count = 0
    for match in _UPDATE.finditer(text):
        table = (match[1] or match[2]).lower()
        column = COLUMNS.get(table, "(?:job)?status") if table in COLUMNS or table == "{}" else None
        if column and re.search(rf"(?:^|,)\s*(?:\w+\.)?\(?{column}\s*[=,)]", _assigned(text[match.end() :])):
            count += 1
    return count


def _assigned(text: str) -> str:
    """What an UPDATE sets, up to its WHERE, FROM or RETURNING, without what stands in parentheses."""
    outside, depth = [], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
        outside.append(char if depth == 0 else " ")
    return _END.split("".join(outside), maxsplit=1)[0]


def _saves(node: ast.AST, place: str) -> bool:
    """Whether a row of Django's gets a state here: by a queryset's update, or an attribute."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        written = [t for one in targets for t in (one.elts if isinstance(one, ast.Tuple) else [one])]
        return any(
            isinstance(t, ast.Attribute) and t.attr in ("status", "jobstatus") and not _of_another(t, place)
            for t in written
        )
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name) and node.func.id == "setattr":
        return len(node.args) > 1 and _text(node.args[1]) == "status"
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("bulk_update", "bulk_create", "update_or_create"):
        return any(_text(part) == "status" for argument in node.args[1:] for part in ast.walk(argument))
    return node.func.attr in ("update", "aupdate") and any(word.arg == "status" for word in node.keywords)


def _of_another(target: ast.Attribute, place: str) -> bool:
    """Whether an object writes its own state, and is of a class whose states are none of these."""
    own = isinstance(target.value, ast.Name) and target.value.id == "self"
    return own and place.split(".")[0] not in MODELS
