"""Whatever the schema of API v2 allows, and much that it does not, gets an answer that the schema describes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from schemathesis import Response
from schemathesis.checks import not_a_server_error
from schemathesis.generation.case import Case
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fuzz.sending import CASES, Fuzz, on_the_wire

pytestmark = pytest.mark.django_db
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def judge(case: Case, answer: HttpResponse) -> bool:
    headers = {name: [value] for name, value in answer.headers.items()}
    wire = on_the_wire(case)
    given = Response(answer.status_code, headers, answer.content, wire, elapsed=0.0, verify=False)
    case.validate_response(given, checks=CHECKS)
    return answer.status_code >= 400


def test_every_answer_of_the_resources_is_what_the_schema_says(fuzz: Callable[..., Fuzz]) -> None:
    requests = fuzz(lambda path: path.startswith("/api/v2/"), judge)
    requests.run()
    assert len(requests.operations) > 40 and requests.sent > CASES / 2 * len(requests.operations)
