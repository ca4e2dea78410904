"""A job that ended before its payload began is not said to have run: on its page, and in the API."""

from __future__ import annotations

import pytest

from tasks_app.dispatch.reports import update_job
from tasks_app.explaining.why_job import why
from tasks_app.models import Job
from tests.flow.driving import agents_turn, parameters, settle, submit
from tests.flow.pilot import Pilot, report

pytestmark = pytest.mark.usefixtures("books")


@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize(
    ("states", "code", "said"),
    [
        (("starting", "running"), 1305, "it ran"),
        (("starting", "running"), 1137, "it ran"),
        (("starting", "running"), 1313, "it ran"),
        (("starting", "running"), 1099, "it did not run: its input could not be read"),
        (("starting", "running"), -1151, "it did not run: its input could not be read"),
        (("starting", "running"), 1110, "it did not run: it could not be set up"),
        (("starting", "running"), 1149, "it did not run: its program could not be fetched"),
        (("starting", "running"), 1246, "it did not run: its sandbox could not be fetched"),
        (("starting", "running"), 1349, "it did not run: its command line cannot be used"),
        (("starting",), 1246, "it did not run: its sandbox could not be fetched"),
        (("starting",), 1201, "it did not run: its pilot ended it before the payload began"),
    ],
)
def test_what_ends_a_job_before_its_payload_is_not_said_to_have_run(
    states: tuple[str, ...], code: int, said: str, booked: bool
) -> None:
    """PanDA's pilots tell `running` before they read the inputs, so that the state alone says nothing."""
    submit(parameters("lab.t", noInput=True, nEvents=1, nEventsPerJob=1, maxAttempt=1))
    settle()
    (job,) = Pilot().fetch(1)
    for state in states:
        update_job(report(job, state))
    update_job(report(job, "failed", errors={"pilot_error_code": code}))
    if booked:
        agents_turn()
    found = Job.objects.get(pk=job["PandaID"])
    assert found.status == ("failed" if booked else "holding")
    (gate,) = [gate for gate in why(found)["gates"] if gate["name"] == "running"]
    assert gate["sentence"] == said
