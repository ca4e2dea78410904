"""A definition from what a person wrote: JSON or the compact text, told apart by how it begins. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jedisite.vocabulary.words import sentence
from tasks_app.params.faults import FieldError, ParamErrors
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.workflow_checks import checked
from tasks_app.workflows.rules.workflow_text import LONGEST_TEXT, document_of, on_lines


def read_definition(text: str) -> tuple[Definition, Graph]:
    """The definition that a text holds, and its graph. Raises ParamErrors with every fault."""
    if not text.lstrip().startswith("{"):
        document, lines = document_of(text)
        try:
            return checked(document)
        except ParamErrors as errors:
            raise on_lines(errors, lines) from None
    return checked(_from_json(text))


def _from_json(text: str) -> Mapping[str, Any]:
    if len(text) > 10 * LONGEST_TEXT:
        raise ParamErrors((FieldError("", "length", f"It has more than {10 * LONGEST_TEXT} characters."),))
    try:
        document: Mapping[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = "its records stand too deep" if isinstance(error, RecursionError) else str(error)
        raise ParamErrors((FieldError("", "JSON", sentence(f"it is not JSON: {said}")),)) from None
    return document
