"""A definition from what a person wrote: JSON or the compact text, told apart by how it begins. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jedisite.vocabulary.words import sentence
from tasks_app.params.faults import FieldError, ParamErrors, shown
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_text import LONGEST_TEXT, document_of, on_lines


def read_definition(text: str) -> tuple[Definition, Graph]:
    """The definition that a text holds, and its graph. Raises ParamErrors with every fault."""
    if not _is_json(text):
        document, lines = document_of(text)
        try:
            return checked(document)
        except ParamErrors as errors:
            raise on_lines(errors, lines) from None
    return checked(_from_json(text))


@contextmanager
def told_by_line(text: str) -> Iterator[None]:
    """Faults with paths of fields that are raised within have the lines of the compact text in their place."""
    try:
        yield
    except ParamErrors as errors:
        if _is_json(text):
            raise
        raise on_lines(errors, document_of(text)[1]) from None


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError when a name stands twice: all but one of its values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise _TwiceError(f"{shown(twice)} stands twice in one record")
    return found


class _TwiceError(ValueError):
    """A name stands twice in a record."""


def _from_json(text: str) -> Mapping[str, Any]:
    if len(text) > 10 * LONGEST_TEXT:
        raise ParamErrors((FieldError("", "length", f"It has more than {10 * LONGEST_TEXT} characters."),))
    try:
        document: Mapping[str, Any] = json.loads(text, object_pairs_hook=_once)
    except _TwiceError as error:
        raise ParamErrors((FieldError("", "once", sentence(str(error))),)) from None
    except (ValueError, RecursionError) as error:
        said = "its records stand too deep" if isinstance(error, RecursionError) else str(error)
        raise ParamErrors((FieldError("", "JSON", sentence(f"it is not JSON: {said}")),)) from None
    return document
