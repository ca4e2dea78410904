"""Where the code locks rows or compares fences, found by reading it: `path:function` or `path:CONSTANT` of each place."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("jedisite", "brokerage_app", "tasks_app", "events_app")
LOCK = re.compile(
    r"\bFOR\s+(?:NO\s+KEY\s+UPDATE|KEY\s+SHARE|UPDATE|SHARE)\b|\bpg_(?:try_)?advisory\w*lock\w*|\bLOCK\s+TABLE\b"
)
FENCE = re.compile(r"\bfence\s*(?:=|<>|!=)\s*(?!fence\b)(?:%|\w+\.fence|said_)")


def places() -> set[str]:
    """Each lock and each comparison of a fence; the second of a function is called `path:function 2`, and so on."""
    found: Counter[str] = Counter()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                found.update(f"{name}:{place}" for place in places_in(path.read_text()))
    return {f"{place} {n}" if n > 1 else place for place, count in found.items() for n in range(1, count + 1)}


def places_in(source: str) -> list[str]:
    """The functions and constants of a file, each as often as it has a lock or a comparison of fences."""
    return list(_of(ast.parse(source), ""))


def place_of(node: ast.AST, place: str) -> str:
    """The place that a node inside of `place` begins: a function, a class, or a constant of the module; else `place` itself."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"{place}.{node.name}".lstrip(".")
    if not place and isinstance(node, ast.Assign | ast.AnnAssign):
        return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    return place


def _of(node: ast.AST, place: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = place_of(child, place)
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        yield from (place for _ in range(_locks(child)))
        yield from _of(child, inner)


def _locks(node: ast.AST) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return len(LOCK.findall(node.value)) + len(FENCE.findall(node.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "select_for_update"
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        with_none = any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        return not with_none and any(isinstance(side, ast.Attribute) and side.attr == "fence" for side in sides)
    return 0
