"""Sends what schemathesis invents from the schema, in process, and rolls back whatever a request did.

The cases are the same in every run, more of them with `JEDI_TEST_ALL=full`. `FUZZ_CASES=500` makes that many of each
call, new ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import requests
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation, BaseSchema

from tests.thorough import cases

NUMBER = 20_000_000
CASES = int(os.environ.get("FUZZ_CASES", cases(12, full=60)))
Judge = Callable[[Case, HttpResponse], bool]
"""Looks at an answer, with an AssertionError for what must not be; whether the request was refused."""


class Fuzz:
    """Requests to the calls of one interface, by callers of each kind."""

    def __init__(
        self,
        schema: BaseSchema,
        clients: dict[str, Client],
        rows_stored: Callable[[], dict[str, int]],
        belongs: Callable[[str], bool],
        judge: Judge,
    ) -> None:
        found = (result.ok() for result in schema.get_all_operations())
        self.operations: list[APIOperation] = [operation for operation in found if belongs(operation.path)]
        self.clients = clients
        self.rows_stored = rows_stored
        self.before = rows_stored()
        self.judge = judge
        self.sent = 0

    def run(self) -> None:
        """All calls; one that fails does not hide the others. Raises ExceptionGroup."""
        failures: list[Exception] = []
        for operation in self.operations:
            try:
                self._run(operation)
            except Exception as exc:  # noqa: BLE001 - raised below
                failures.append(exc)
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {len(self.operations)} calls", failures)

    def _run(self, operation: APIOperation) -> None:
        # Who has no right is sent now and then; the table of rights is tested elsewhere.
        callers = sorted(self.clients) + 3 * self._allowed(operation)
        modes = [operation.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]

        @settings(
            max_examples=CASES,
            derandomize="FUZZ_CASES" not in os.environ,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def one(data: st.DataObject) -> None:
            caller = data.draw(st.sampled_from(callers), label="caller")
            case = data.draw(st.one_of(modes), label="case")
            for part in (case.path_parameters, case.query, case.body):
                if isinstance(part, dict):
                    _name_what_is_there(part, data)
            self.send(caller, case)

        one()

    def _allowed(self, operation: APIOperation) -> list[str]:
        parameters = {p.name: NUMBER for p in operation.path_parameters}
        case = operation.Case(path_parameters=parameters)
        return [kind for kind in sorted(self.clients) if self._ask(kind, case).status_code not in (401, 403)]

    def send(self, caller: str, case: Case) -> None:
        """One request; refused or not, nothing of it stays."""
        self.sent += 1
        told = f"{caller}: {case.method} {case.formatted_path} {case.query} {case.body!r}"[:1000]
        with transaction.atomic():
            try:
                answer = self._ask(caller, case)
                assert answer.status_code < 500
                if self.judge(case, answer):
                    found = self.rows_stored()
                    left = {
                        table: rows - self.before[table] for table, rows in found.items() if rows != self.before[table]
                    }
                    assert not left, f"a refused request left rows: {left}"
            except Exception as exc:
                exc.add_note(told)
                raise
            finally:
                transaction.set_rollback(True)

    def _ask(self, caller: str, case: Case) -> HttpResponse:
        wire = on_the_wire(case)
        body = wire.body or b""
        answer = self.clients[caller].generic(
            wire.method or "",
            wire.path_url,
            body.encode() if isinstance(body, str) else body,
            wire.headers.get("Content-Type", ""),
            headers={"accept": wire.headers.get("Accept", "*/*")},
        )
        if not answer.streaming:
            return answer
        return HttpResponse(b"".join(answer.streaming_content), status=answer.status_code, headers=dict(answer.headers))


def on_the_wire(case: Case) -> requests.PreparedRequest:
    return requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()


def _name_what_is_there(part: dict[str, Any], data: st.DataObject) -> None:
    """Put in the number of what exists, more often than not: what only fails to be found shows little."""
    for name in _named(part):
        if data.draw(st.integers(0, 3), label=f"real {name}"):
            part[name] = [NUMBER] if isinstance(part[name], list) else NUMBER


def _named(part: dict[str, Any]) -> list[str]:
    return [
        name for name in part if name.lower().endswith(("id", "ids", "pk", "name", "site", "queue", "computingsite"))
    ]
