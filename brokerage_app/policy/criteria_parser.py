"""From the text of criteria to their tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from brokerage_app.policy.criteria import (
    ATTRIBUTES,
    NUMBERS,
    OPPOSITE,
    All,
    Condition,
    Criteria,
    Either,
    Node,
    Operator,
    Value,
)

LONGEST: Final = 4000
"""Characters of criteria."""
DEEPEST: Final = 50
"""Parentheses and NOTs within one another."""
MOST_DIGITS: Final = 18
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
class _Token:
    kind: str
    text: str
    position: int


_END: Final = "the end"


class _Parser:
    """One pass over the tokens. Expressions take `negated`: whether an odd number of NOTs stands before them."""

    def __init__(self, text: str, variables: Mapping[str, str]) -> None:
        if len(text) > LONGEST:
            raise ParseError(f"Criteria have {len(text)} characters, the limit is {LONGEST}", LONGEST)
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
                raise ParseError(f"{attribute} is a number; LIKE works on texts only", self._next.position)
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
