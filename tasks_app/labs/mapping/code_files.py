"""Which file of the code defines a name, and which files use a word. Files are parsed, not run."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
APPS: Final = ("jedisite", "brokerage_app", "tasks_app", "events_app")
_SPLIT_RULE = re.compile(r"\b([A-Z]{2})=")
_QUOTED = re.compile(r"'([a-z]+)'")


@dataclass(slots=True)
class Words:
    """What a file says: whole texts, members of enumerations, words in quotes inside of SQL."""

    texts: set[str] = field(default_factory=set)
    members: set[str] = field(default_factory=set)
    quoted: set[str] = field(default_factory=set)
    split_codes: set[str] = field(default_factory=set)


def all_files() -> Iterator[str]:
    """All modules of the four apps but migrations, as paths from the top of the checkout."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def defined(path: str) -> frozenset[str]:
    """Functions, classes, constants and `Class.method` of a file."""
    return frozenset(_defined(tree(path).body, ""))


def _defined(body: list[ast.stmt], inside: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inside + node.name
        elif isinstance(node, ast.ClassDef):
            yield inside + node.name
            yield from _defined(node.body, f"{inside}{node.name}.")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield inside + node.target.id
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (inside + one.id for one in ast.walk(target) if isinstance(one, ast.Name))


@cache
def words(path: str) -> Words:
    said = Words()
    short: dict[str, str] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Assign):
            short |= _short_names(node)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            said.texts.add(node.value)
            said.quoted.update(_QUOTED.findall(node.value))
            said.split_codes.update(_SPLIT_RULE.findall(node.value))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            said.members.add(f"{short.get(node.value.id, node.value.id)}.{node.attr}")
    return said


def _short_names(node: ast.Assign) -> dict[str, str]:
    """Short names for enumerations, as in `T, J = TaskStatus, JobStatus`."""
    left, right = node.targets[0], node.value
    if isinstance(left, ast.Name) and isinstance(right, ast.Name):
        return {left.id: right.id}
    if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple):
        pairs = zip(left.elts, right.elts, strict=False)
        return {a.id: b.id for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)}
    return {}


def templates(path: str, function: str) -> list[str]:
    """The templates that a view names in its own body."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            return list(dict.fromkeys(f"templates/{text}" for text in texts if text.endswith(".html")))
    return []


def first_line(path: str) -> str:
    """What a file says of itself, up to the first full stop."""
    said = (ast.get_docstring(tree(path)) or "").split("\n\n")[0]
    return " ".join(said.split()).split(". ")[0].removesuffix(".")


@cache
def constants_of_codes(path: str) -> dict[str, str]:
    """From a registered refusal code to the constant that holds it."""
    named = {}
    for node in tree(path).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call):
            first = node.value.args[0] if node.value.args else None
            registers = isinstance(node.value.func, ast.Name) and node.value.func.id in ("code", "_code")
            if registers and isinstance(first, ast.Constant) and isinstance(first.value, str):
                named[first.value] = node.target.id
    return named


def where_used(kind: str, passed_over: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """From a word of one kind (a field of `Words`) to the files that use it. Folders and files may be passed over."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in all_files():
        if not path.startswith(passed_over):
            for word in getattr(words(path), kind):
                found[word].append(path)
    return found
