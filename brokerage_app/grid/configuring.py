"""Moves: people change a value of the configuration, and the audit trail says who and from what."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from brokerage_app.grid import configured
from brokerage_app.grid.configured_names import Names
from brokerage_app.models import GdpConfig
from brokerage_app.policy.configuration import problem_of
from brokerage_app.policy.parameter import Parameter, Type, UnknownParameterError
from brokerage_app.policy.parameters import nearest, parse_key
from jedisite import audit


class BadValueError(ValueError):
    """The value is not of the parameter's type or out of its bounds; the sentence says which."""


def parameter_of(component: str, key: str) -> Parameter:
    """The parameter that a stored key sets. Raises UnknownParameterError."""
    parsed = parse_key(component, key)
    if parsed is None:
        raise UnknownParameterError(f"there is no parameter {key} of {component}; {nearest(component, key)}")
    return parsed[0]


@transaction.atomic
def set_value(component: str, key: str, value: str, *, vo: str = "", by: str, reason: str = "") -> GdpConfig:
    """Set `key` (with its suffixes) to a value given as text, for a VO or for all.

    Raises UnknownParameterError, and BadValueError; nothing is written then.
    """
    parameter = parameter_of(component, key)
    is_json = parameter.type == Type.JSON
    stored, text = ("", value) if is_json else (value, "")
    problem = problem_of(parameter.app, component, key, stored, parameter.type.value, text)
    if problem is not None:
        raise BadValueError(problem[1])
    if fault := Names().fault(component, key):
        raise UnknownParameterError(fault)
    row = _locked(parameter, component, key, vo)
    before = None if row is None else _shown(row)
    if row is None:
        row = GdpConfig(app=parameter.app, component=component, key=key, vo=vo or None)
    row.value, row.type = None if is_json else stored, parameter.type.value
    row.value_json = json.loads(text) if is_json else None
    row.save()
    details: dict[str, Any] = {"component": component, "key": key, "vo": vo, "changed": [before, _shown(row)]}
    audit.record(by, "config.set", "gdpconfig", row.pk, reason=reason, details=details)
    return row


@transaction.atomic
def unset_value(component: str, key: str, *, vo: str = "", by: str, reason: str = "") -> bool:
    """Take the row of a key away, so that the next one or the default holds; False when there is none."""
    parameter = parameter_of(component, key)
    row = _locked(parameter, component, key, vo)
    if row is None:
        return False
    details = {"component": component, "key": key, "vo": vo, "changed": [_shown(row), None]}
    audit.record(by, "config.unset", "gdpconfig", row.pk, reason=reason, details=details)
    row.delete()
    return True


def _locked(parameter: Parameter, component: str, key: str, vo: str) -> GdpConfig | None:
    rows = GdpConfig.objects.select_for_update().filter(app=parameter.app, component=component, key=key)
    return (rows.filter(vo=vo) if vo else rows.filter(vo=None)).first()


def _shown(row: GdpConfig) -> Any:
    return row.value if row.value_json is None else row.value_json


def forget_after_change(**_: object) -> None:
    """This process reads the table again, at once and when the change is there for all."""
    configured.forget()
    transaction.on_commit(configured.forget)
