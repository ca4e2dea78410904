"""The language of work queues' criteria: parsed once, asked of a task's attributes, or turned into a filter.

Criteria read like the condition of an SQL statement and mean the same (JEDI wiki, table JEDI_Work_Queue), but no text
of them ever reaches the database. A comparison with an attribute that is null is never met, nor is its negation.
NOT is moved down to the comparisons while parsing: what is left to say of each is whether it is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Final, Literal

Value = str | int
Operator = Literal["=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN", "LIKE", "NOT LIKE", "IS NULL", "IS NOT NULL"]

TEXTS: Final = ("prodSourceLabel", "workingGroup", "processingType", "site", "splitRule", "campaign")
NUMBERS: Final = ("coreCount", "eventService")
ATTRIBUTES: Final[Mapping[str, str]] = {name.lower(): name for name in (*TEXTS, *NUMBERS)}
"""What criteria may ask about, by the name in lower case, which is also the column of jedi_tasks."""

OPPOSITE: Final[Mapping[str, Operator]] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "IN": "NOT IN",
    "NOT IN": "IN",
    "LIKE": "NOT LIKE",
    "NOT LIKE": "LIKE",
    "IS NULL": "IS NOT NULL",
    "IS NOT NULL": "IS NULL",
}

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_FOLD: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of an attribute with values. Only IS NULL is met by an attribute that is null."""

    attribute: str
    operator: Operator
    values: tuple[Value, ...] = ()

    @property
    def column(self) -> str:
        return self.attribute.lower()

    def __str__(self) -> str:
        shown = ", ".join(_shown(value) for value in self.values)
        if self.operator.endswith("IN"):
            shown = f"({shown})"
        return f"{self.attribute} {self.operator} {shown}".rstrip()


@dataclass(frozen=True, slots=True)
class All:
    """Every part is met; without parts, always."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """At least one part is met."""

    parts: tuple[Node, ...]


Node = Condition | All | Either


Values = Mapping[str, Value | None]
"""A task's attributes under the names of `ATTRIBUTES`; a missing one is null."""


class Criteria:
    """Parsed criteria."""

    __slots__ = ("matches", "root")

    matches: Callable[[Values], bool]
    """Whether a task meets them."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.matches = _predicate(root)

    def unmet(self, values: Values) -> tuple[Condition, ...]:
        """The comparisons that keep the criteria from being met, in the order of the text; none when they are met."""
        return _unmet(self.root, values)


@dataclass(frozen=True, slots=True)
class Clause:
    """A line of criteria as a task meets it: `text` is a comparison, or how the lines below it (`depth` + 1) are joined."""

    depth: int
    text: str
    met: bool
    has: str = ""


def clauses(criteria: Criteria, values: Values) -> tuple[Clause, ...]:
    """Criteria line by line, from the outside inwards, with what the task has where a comparison is made."""
    return tuple(_clauses(criteria.root, values, 0))


def _clauses(node: Node, values: Values, depth: int) -> Iterator[Clause]:
    met = _predicate(node)(values)
    if isinstance(node, Condition):
        yield Clause(depth, str(node), met, _has(node.attribute, values))
        return
    joined = "at least one of" if isinstance(node, Either) else "all of" if node.parts else "every task"
    yield Clause(depth, joined, met)
    for part in node.parts:
        yield from _clauses(part, values, depth + 1)


def like(pattern: str, value: str) -> bool:
    """Whether a text fits: `%` is any run of characters, all else stands for itself. A to Z in either case."""
    return _like(pattern)(value)


def _like(pattern: str) -> Callable[[str], bool]:
    first, *middle = folded(pattern).split("%")
    if not middle:
        return lambda value: folded(value) == first
    last = middle.pop()

    def fits(value: str) -> bool:
        text = folded(value)
        place, end = len(first), len(text) - len(last)
        if place > end or not text.startswith(first) or not text.endswith(last):
            return False
        for piece in middle:
            found = text.find(piece, place, end)
            if found < 0:
                return False
            place = found + len(piece)
        return True

    return fits


def sentence(unmet: tuple[Condition, ...], values: Values) -> str:
    """Why criteria were not met, for people."""
    return "; ".join(f"{condition} is false: {_has(condition.attribute, values)}" for condition in unmet)


def folded(text: str) -> str:
    """A to Z in lower case, all else as it is."""
    return text.lower() if text.isascii() else text.translate(_FOLD)


def _predicate(node: Node) -> Callable[[Values], bool]:
    """Functions within functions: a task is asked of some hundred criteria, and walking the tree takes ten times longer."""
    if isinstance(node, Condition):
        return _comparison(node)
    parts = [_predicate(part) for part in node.parts]
    if isinstance(node, All):
        match parts:
            case []:
                return lambda values: True
            case [one, other]:
                return lambda values: one(values) and other(values)
        return lambda values: all(part(values) for part in parts)
    return lambda values: any(part(values) for part in parts)


def _comparison(condition: Condition) -> Callable[[Values], bool]:
    name, operator = condition.attribute, condition.operator
    if operator == "IS NULL":
        return lambda values: values.get(name) is None
    if operator == "IS NOT NULL":
        return lambda values: values.get(name) is not None
    # None is no value of a condition: it is in none and equals none.
    among = frozenset(condition.values)
    if operator in ("=", "IN"):
        return lambda values: values.get(name) in among
    if operator in ("<>", "NOT IN"):
        without = among | {None}
        return lambda values: values.get(name) not in without
    wanted = condition.values[0]
    test: Callable[[Any], bool]
    if operator in ("LIKE", "NOT LIKE"):
        fits, expected = _like(str(wanted)), operator == "LIKE"
        test = lambda value: fits(value) is expected  # noqa: E731
    else:
        compare = _COMPARE[operator]
        test = lambda value: compare(value, wanted)  # noqa: E731
    return lambda values: (value := values.get(name)) is not None and test(value)


def _unmet(node: Node, values: Values) -> tuple[Condition, ...]:
    if isinstance(node, Condition):
        return () if _comparison(node)(values) else (node,)
    found = [_unmet(part, values) for part in node.parts]
    if isinstance(node, Either) and not all(found):
        return ()
    return tuple(condition for part in found for condition in part)


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _has(attribute: str, values: Values) -> str:
    value = values.get(attribute)
    return f"{attribute} is {'null' if value is None else _shown(value)}"
