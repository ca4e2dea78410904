"""Criteria of work queues as filters of querysets: the same rows as `Criteria.matches` says of their attributes.

Values become parameters. Texts are compared byte by byte, whatever the database's collation is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import models
from django.db.models import BooleanField, F, Func, Q, Value
from django.db.models.functions import Collate, Lower
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from brokerage_app.policy.criteria import TEXTS, All, Condition, Criteria, Node, folded

_LOOKUPS: Final[Mapping[str, Callable[..., models.Lookup[Any]]]] = {
    "=": Exact,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "IN": In,
}
_NEGATED: Final = {"<>": "=", "NOT IN": "IN", "NOT LIKE": "LIKE"}


def to_q(criteria: Criteria, fields: Mapping[str, str]) -> Q:
    """The filter for a model whose fields are called `fields[attribute]`, by the names of `criteria.ATTRIBUTES`."""
    return _q(criteria.root, fields)


def _q(node: Node, fields: Mapping[str, str]) -> Q:
    if isinstance(node, Condition):
        return _condition(node, fields[node.attribute])
    parts = [_q(part, fields) for part in node.parts]
    joined = Q(*parts, _connector=Q.AND if isinstance(node, All) else Q.OR)
    return joined or Q(Value(True))


def _condition(condition: Condition, field: str) -> Q:
    if condition.operator in ("IS NULL", "IS NOT NULL"):
        return Q(**{f"{field}__isnull": condition.operator == "IS NULL"})
    present = Q(**{f"{field}__isnull": False})
    opposite = _NEGATED.get(condition.operator)
    if opposite is not None:
        return present & ~Q(_comparison(condition, opposite, field))
    return present & Q(_comparison(condition, condition.operator, field))


def _comparison(condition: Condition, operator: str, field: str) -> models.Expression | models.Lookup[Any]:
    if operator == "LIKE":
        pattern = folded(str(condition.values[0]))
        for special in ("\\", "_"):
            pattern = pattern.replace(special, "\\" + special)
        return Func(
            Lower(Collate(F(field), "C")),
            Value(pattern),
            template="(%(expressions)s)",
            arg_joiner=" LIKE ",
            output_field=BooleanField(),
        )
    column = Collate(F(field), "C") if condition.attribute in TEXTS else F(field)
    values = condition.values if operator == "IN" else condition.values[0]
    return _LOOKUPS[operator](column, values)
