"""Whatever is sent to PanDA's calls, their clients get an answer that they can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs

import pytest
from django.http import HttpResponse
from schemathesis.generation.case import Case

from tasks_app.api.panda.wire import StatusCode
from tests.fuzz.sending import CASES, Fuzz

RELAYS = {
    f"/server/panda/{name}" for name in ("put_workflow_request", "relay_idds_command", "execute_idds_workflow_command")
}
"""Their callers read a pair: whether it went well, and a sentence."""
BULK = "/server/panda/updateJobsInBulk"
"""Its callers read a pair too: true, and the answers about each job as texts."""
PICKING = "/server/panda/putEventPickingRequest"
"""Its callers print what they get."""
STATES = "/server/panda/getStatus"
"""Its callers read a form."""
RANGES = "/server/panda/get_events_status"
"""Its callers read the states of ranges by the numbers of jobs, and nothing beside them."""
pytestmark = pytest.mark.django_db


def judge_v1(case: Case, answer: HttpResponse) -> bool:
    """The envelope, or a text that says who may not; and by the method the call is not made with, 405."""
    if answer.status_code in (401, 405, 413):
        assert answer.headers["Content-Type"].startswith("text/plain") and answer.content, answer.content[:200]
        return True
    assert answer.status_code in (200, 403), answer.content[:300]
    if not answer.headers["Content-Type"].startswith("application/json"):
        return False
    said = json.loads(answer.content)
    assert {"success", "message", "data"} <= set(said) and isinstance(said["success"], bool), said
    # A pilot that finds no job was not refused: its call is counted.
    return not said["success"] and said["message"] != "no jobs in PanDA"


def judge_legacy(case: Case, answer: HttpResponse) -> bool:
    assert answer.status_code == 200, answer.content[:300]
    if answer.headers["Content-Type"].startswith("text/plain"):
        assert case.path == PICKING or (case.path == STATES and "StatusCode" in parse_qs(answer.text)), answer.text
        return case.path == PICKING
    said = json.loads(answer.content)
    if isinstance(said, list) and case.path == BULK:
        assert said[0] is True and all(json.loads(one)["StatusCode"] in set(StatusCode) for one in said[1]), said
        return False
    if isinstance(said, list):
        assert case.path in RELAYS and said[0] is False and isinstance(said[1], str), said
        return True
    if case.path == RANGES and "StatusCode" not in said:
        assert all(isinstance(of_job, dict) for of_job in said.values()), said
        return False
    assert said["StatusCode"] in set(StatusCode), said
    return said["StatusCode"] not in (StatusCode.OK, StatusCode.NO_JOBS)


def test_every_answer_of_a_v1_call_is_the_envelope_or_says_who_may_not(fuzz: Callable[..., Fuzz]) -> None:
    requests = fuzz(lambda path: path.startswith("/api/v1/"), judge_v1)
    requests.run()
    assert len(requests.operations) > 40 and requests.sent > CASES / 2 * len(requests.operations)


def test_every_answer_of_a_legacy_call_is_json_with_a_status_code(fuzz: Callable[..., Fuzz]) -> None:
    requests = fuzz(lambda path: path.startswith("/server/panda/"), judge_legacy)
    requests.run()
    assert requests.operations and requests.sent > CASES / 2 * len(requests.operations)
