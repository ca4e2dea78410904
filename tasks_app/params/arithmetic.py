"""Arithmetic on one number, as in `${SEQNUMBER/M[#*100+1]}`: parsed once into functions, never evaluated as code."""

from __future__ import annotations

import ast
from collections.abc import Callable

Number = int | float
Formula = Callable[[Number], Number]

LONGEST = 200
_VALUE = "value"


class BadFormula(ValueError):
    """The text is not arithmetic on `#`."""


def compile_formula(text: str) -> Formula:
    """A function of the value that `#` stands for. Takes + - * / // % and brackets. Raises BadFormula."""
    if len(text) > LONGEST:
        raise BadFormula(f"A formula has at most {LONGEST} characters, not {len(text)}.")
    if _VALUE in text:
        raise BadFormula(f"{text!r} is not arithmetic on #.")
    try:
        tree = ast.parse(text.replace("#", f" {_VALUE} ").strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise BadFormula(f"{text!r} is not arithmetic on #: {error}") from error
    return _compile(tree.body, text)


def _compile(node: ast.expr, text: str) -> Formula:
    if isinstance(node, ast.Name) and node.id == _VALUE:
        return lambda value: value
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        number: Number = node.value
        return lambda value: number
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner, sign = _compile(node.operand, text), -1 if isinstance(node.op, ast.USub) else 1
        return lambda value: sign * inner(value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_compile(node.left, text), _compile(node.right, text))
    raise BadFormula(f"{text!r} may contain only numbers, #, + - * / // % and brackets.")


_OPERATIONS: dict[type[ast.operator], Callable[[Formula, Formula], Formula]] = {
    ast.Add: lambda left, right: lambda value: left(value) + right(value),
    ast.Sub: lambda left, right: lambda value: left(value) - right(value),
    ast.Mult: lambda left, right: lambda value: left(value) * right(value),
    ast.Div: lambda left, right: lambda value: left(value) / right(value),
    ast.FloorDiv: lambda left, right: lambda value: left(value) // right(value),
    ast.Mod: lambda left, right: lambda value: left(value) % right(value),
}


def result_text(number: Number) -> str:
    """A result as it stands in a command line: whole numbers without a point."""
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)
