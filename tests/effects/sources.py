"""What a function, class or constant of the sources, or a test, mentions: parsed once, nothing is imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{2,}|(?<![A-Za-z_])[a-z]{1,2}(?![A-Za-z_])")
# Codes of the split rule: alone, or with a value. SQL has words of two capitals, too.
_CODE = re.compile(r"(?:^|,)\s*([A-Z]{2})(?=[=,]|$)|\b([A-Z]{2})=")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def definitions(path: str) -> dict[str, ast.AST]:
    """What a file defines, by name: `function`, `Class`, `Class.method`, `CONSTANT`. Empty when there is no such file."""
    file = ROOT / path
    return dict(_named(ast.parse(file.read_text()).body, "")) if file.is_file() else {}


def _named(body: list[ast.stmt], within: str) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, Definition):
            yield within + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _named(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.Assign):
            yield from ((within + target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield within + node.target.id, node


def path_of(module: str) -> str:
    """The file of a module, or of a package."""
    path = module.replace(".", "/")
    return f"{path}.py" if (ROOT / f"{path}.py").is_file() else f"{path}/__init__.py"


@cache
def words(path: str, name: str) -> frozenset[str] | None:
    """The names, attributes, keywords and words of texts in a definition; None when it is not there. Docstrings do not count."""
    node = definitions(path).get(name)
    return None if node is None else frozenset(_words(node))


def _words(node: ast.AST) -> Iterator[str]:
    silent = set()
    for one in ast.walk(node):
        if isinstance(one, Definition) and one.body and _is_text(one.body[0]):
            silent.add(id(one.body[0].value))  # type: ignore[attr-defined]
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.keyword | ast.arg) and one.arg:
            yield one.arg
        elif isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in silent:
            yield from _WORD.findall(one.value)
            yield from (found[1] or found[2] for found in _CODE.finditer(one.value))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
