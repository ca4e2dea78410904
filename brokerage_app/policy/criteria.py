"""The language of work queues' criteria: parsed once, asked of a task's attributes, or turned into a filter.

Criteria read like the condition of an SQL statement and mean the same (JEDI wiki, table JEDI_Work_Queue), but no text
of them ever reaches the database. A comparison with an attribute that is null is never met, nor is its negation.
NOT is moved down to the comparisons while parsing: what is left to say of each is whether it is met.
"""

from __future__ import annotations

import re
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
LONGEST: Final = 4000
"""Characters of criteria."""
DEEPEST: Final = 50
"""Parentheses and NOTs within one another."""
MOST_DIGITS: Final = 18

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_FOLD: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<word>[A-Za-z_]\w*)|(?P<name>:\w+)|(?P<number>-?\d+(?!\w))|(?P<text>'(?:[^']|'')*')|(?P<mark><=|>=|<>|!=|[=<>(),]))""",
    re.ASCII,
)
_WORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "LIKE", "IS", "NULL"})


class ParseError(ValueError):
    """Criteria that cannot be read. `position` counts characters from 1; the sentence says what was expected there."""

    def __init__(self, sentence: str, position: int) -> None:
        super().__init__(f"{sentence} (at character {position})")
        self.position = position


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


def parse(criteria: str | None, variables: str | None = None) -> Criteria:
    """Read criteria and put the values of the variables in. Null or empty criteria are always met.

    Raises ParseError, also for a variable without a value, and for a value that does not go with its attribute.
    """
    if criteria is None or not criteria.strip():
        return Criteria(All())
    return _Parser(criteria, bindings(variables)).criteria()


def bindings(variables: str | None) -> dict[str, str]:
    """`p1:evgen,p2:simul` as a dictionary. Items without exactly one colon are ignored, as JEDI does."""
    pairs = (item.split(":") for item in (variables or "").split(","))
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}


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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


_END: Final = "the end"


class _Parser:
    """One pass over the tokens. Expressions take `negated`: whether an odd number of NOTs stands before them."""

    def __init__(self, text: str, variables: Mapping[str, str]) -> None:
        if len(text) > LONGEST:
            raise ParseError(f"Criteria have {len(text)} characters, the most is {LONGEST}", LONGEST)
        self._tokens = _tokens(text)
        self._variables = variables
        self._place = 0
        self._depth = 0

    def criteria(self) -> Criteria:
        root = self._either(negated=False)
        if self._next.kind != "end":
            raise self._expected("AND, OR or the end")
        return Criteria(root)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self) -> _Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _is(self, *texts: str) -> bool:
        return self._next.kind in ("word", "mark") and self._next.text.upper() in texts

    def _skip(self, text: str) -> bool:
        if not self._is(text):
            return False
        self._take()
        return True

    def _need(self, text: str) -> None:
        if not self._skip(text):
            raise self._expected(text)

    def _expected(self, what: str) -> ParseError:
        found = _END if self._next.kind == "end" else repr(self._next.text)
        return ParseError(f"Expected {what}, found {found}", self._next.position)

    def _either(self, *, negated: bool) -> Node:
        parts = [self._both(negated=negated)]
        while self._skip("OR"):
            parts.append(self._both(negated=negated))
        return parts[0] if len(parts) == 1 else (All if negated else Either)(tuple(parts))

    def _both(self, *, negated: bool) -> Node:
        parts = [self._one(negated=negated)]
        while self._skip("AND"):
            parts.append(self._one(negated=negated))
        return parts[0] if len(parts) == 1 else (Either if negated else All)(tuple(parts))

    def _one(self, *, negated: bool) -> Node:
        if not self._is("NOT", "("):
            return self._condition(negated=negated)
        self._depth += 1
        if self._depth > DEEPEST:
            raise ParseError(f"More than {DEEPEST} parentheses and NOTs within one another", self._next.position)
        if self._skip("NOT"):
            node = self._one(negated=not negated)
        else:
            self._take()
            node = self._either(negated=negated)
            self._need(")")
        self._depth -= 1
        return node

    def _condition(self, *, negated: bool) -> Condition:
        token = self._next
        if token.kind != "word" or token.text.upper() in _WORDS:
            raise self._expected("the name of an attribute, NOT or (")
        attribute = ATTRIBUTES.get(token.text.lower())
        if attribute is None:
            known = ", ".join(ATTRIBUTES.values())
            raise ParseError(f"There is no attribute {token.text}; these can be used: {known}", token.position)
        self._take()
        operator, values = self._comparison(attribute)
        return Condition(attribute, OPPOSITE[operator] if negated else operator, values)

    def _comparison(self, attribute: str) -> tuple[Operator, tuple[Value, ...]]:
        if self._skip("IS"):
            negated = self._skip("NOT")
            self._need("NULL")
            return ("IS NOT NULL" if negated else "IS NULL"), ()
        negated = self._skip("NOT")
        if self._skip("IN"):
            self._need("(")
            values = [self._value(attribute)]
            while self._skip(","):
                values.append(self._value(attribute))
            self._need(")")
            return ("NOT IN" if negated else "IN"), tuple(values)
        if self._is("LIKE"):
            if attribute in NUMBERS:
                raise ParseError(f"{attribute} is a number, which LIKE cannot be asked of", self._next.position)
            self._take()
            return ("NOT LIKE" if negated else "LIKE"), (self._value(attribute),)
        if negated:
            raise self._expected("IN or LIKE")
        operator = "<>" if self._is("!=") else self._next.text
        if self._next.kind != "mark" or operator not in OPPOSITE:
            raise self._expected("=, <>, <, <=, >, >=, IN, LIKE or IS")
        self._take()
        return operator, (self._value(attribute),)  # type: ignore[return-value]

    def _value(self, attribute: str) -> Value:
        token = self._next
        if token.kind not in ("name", "number", "text"):
            raise self._expected("a :variable, a number or a 'text'")
        self._take()
        if token.kind == "name":
            if token.text[1:] not in self._variables:
                raise ParseError(f"The variable {token.text} has no value", token.position)
            text = self._variables[token.text[1:]]
        else:
            text = token.text[1:-1].replace("''", "'") if token.kind == "text" else token.text
        if attribute in NUMBERS:
            if not re.fullmatch(rf"-?[0-9]{{1,{MOST_DIGITS}}}", text):
                raise ParseError(f"{attribute} is a whole number, {text!r} is not", token.position)
            return int(text)
        if token.kind == "number":
            raise ParseError(f"{attribute} is a text: write '{text}'", token.position)
        if "\0" in text:
            raise ParseError("A text cannot have the character of code 0", token.position)
        return text


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while match := _TOKEN.match(text, place):
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        place = match.end()
    rest = text[place:].lstrip()
    if rest:
        position = len(text) - len(rest) + 1
        what = "the ' that ends a text" if rest[0] == "'" else "a name, a value or an operator"
        raise ParseError(f"Expected {what}, found {rest[:10]!r}", position)
    return [*found, _Token("end", "", len(text.rstrip()) + 1)]
