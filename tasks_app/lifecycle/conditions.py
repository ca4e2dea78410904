"""SQL of what a table of moves allows. The doors have it in their WHERE, so that no other move changes a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

State = TypeVar("State", bound=str)


def may_become(moves: Mapping[State, Collection[State]], news: Iterable[str]) -> set[State]:
    """The states from which a table allows each of `news`."""
    return {old for old, nexts in moves.items() if set(news) <= set(nexts)}


def is_one_of(column: str, states: Iterable[str]) -> str:
    """SQL: a column has one of these states."""
    quoted = sorted(f"'{state}'" for state in states)
    if len(quoted) < 2:
        return f"{column} = {quoted[0]}" if quoted else "false"
    return f"{column} IN ({', '.join(quoted)})"


def as_said(said: str, conditions: Mapping[str, str]) -> str:
    """SQL: `said`, an expression, is one of these new states, and the condition of that one is met."""
    cases = (f"WHEN '{new}' THEN {condition}" for new, condition in conditions.items())
    return f"CASE {said} {' '.join(cases)} ELSE false END"


def not_dropped(file: str) -> str:
    """SQL: a row of files is of no package that was dropped from its workflow: such a one stays out, whatever is tried again."""
    return f"""NOT EXISTS (SELECT FROM workflow_packages p
        WHERE p.jeditaskid = {file}.jeditaskid AND p.boundary = {file}.boundaryid AND p.is_canceled)"""
