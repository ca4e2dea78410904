"""Groups of files as numbered subjobs: there at once, of the same number over all attempts, killed and resubmitted one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jedisite.models import AuditEntry
from tasks_app.agents import feeder, job_generator, refiner, task_broker
from tasks_app.models import Command, Job
from tasks_app.submission import command_queue
from tests.flow.driving import add_dataset, files, jobs, parameters, reads, settle, states, status, submit
from tests.flow.pilot import Job as PilotJob
from tests.flow.pilot import Pilot, drive
from tests.flow.test_file_groups import COMMAND, A, groups_task, xml

pytestmark = pytest.mark.usefixtures("books")
Api = Callable[..., Client]


@pytest.fixture
def ada(api: Api) -> Client:
    return api(name="ada")


def subjobs(client: Client, task_id: int, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/api/v2/tasks/{task_id}/subjobs/{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def all_states(client: Client, task_id: int) -> list[str]:
    return [one["status"] for one in subjobs(client, task_id)["subjobs"]]


def act(client: Client, task_id: int, act: str, numbers: str, code: int = 202) -> str:
    body = {"act": act, "numbers": numbers, "reason": "a reason"}
    answer = client.post(f"/api/v2/tasks/{task_id}/subjobs/", body, content_type="application/json")
    assert answer.status_code == code, answer.content
    return str(answer.json().get("done") or answer.json()["detail"])


def numbered(count: int, **more: Any) -> int:
    """A task whose groups read nothing: subjob k runs with line=k."""
    return submit(parameters("lab.t", COMMAND, loadXML=xml(*[{}] * count), noInput=True, **{"maxAttempt": 1, **more}))


def number_of(job: PilotJob) -> int:
    return int(job["jobPars"].partition("line%3D")[2].partition("%20")[0])


def without(*numbers: int) -> Callable[[PilotJob], str]:
    return lambda job: "failed" if number_of(job) in numbers else "finished"


def make_jobs() -> None:
    for agent in (refiner, feeder, task_broker, job_generator):
        agent.run()


def test_subjobs_are_there_before_their_jobs_and_keep_their_numbers(ada: Client) -> None:
    made = numbered(4)
    at_once = subjobs(ada, made)
    assert (at_once["status"], at_once["counts"], at_once["task_status"]) == (
        "submitted",
        {"submitted": 4},
        "registered",
    )
    assert [one["jobs"] for one in at_once["subjobs"]] == [[]] * 4
    drive(Pilot(without(1, 3)))
    ended = subjobs(ada, made, "?outputs=true")
    assert status(made) == "finished" and ended["status"] == "failed"
    assert [one["status"] for one in ended["subjobs"]] == ["completed", "failed", "completed", "failed"]
    good, bad = ended["subjobs"][:2]
    assert (good["exit_code"], good["error"], bad["exit_code"]) == (0, "", 65) and "exit code 65" in bad["error"]
    (output,) = good["outputs"]
    assert output["lfn"].endswith(".line0.hist.root") and output["id"] in [f.id for f in files(made, "output")]
    assert bad["outputs"] == [] and output.keys() == {"id", "lfn", "size", "checksum"}

    act(ada, made, "resubmit", "3")
    assert all_states(ada, made) == ["completed", "failed", "completed", "submitted"], "before the command is obeyed"
    drive(Pilot())
    again = subjobs(ada, made)
    assert [one["status"] for one in again["subjobs"]] == ["completed", "failed", "completed", "completed"]
    assert [len(one["jobs"]) for one in again["subjobs"]] == [1, 1, 1, 2]
    assert status(made) == "finished" and states(made) == {"finished": 3, "failed": 2}
    act(ada, made, "resubmit", "1")
    drive(Pilot())
    assert status(made) == "done" and subjobs(ada, made)["counts"] == {"completed": 4}
    said = act(ada, made, "resubmit", "0", 409)
    assert said.startswith(f"Subjob 0 of task {made} is completed: only those that failed or were killed")


def test_a_subjob_that_fails_while_others_run_is_resubmitted_at_once(ada: Client) -> None:
    made = numbered(3)
    make_jobs()
    pilot = Pilot()
    held, *others = pilot.fetch(3)
    for job in (held, *others):
        pilot.start(job)
    pilot.end(others[0], "failed")
    pilot.end(others[1], "finished")
    settle()
    assert sorted(all_states(ada, made)) == ["completed", "failed", "running"] and status(made) == "running"
    assert subjobs(ada, made)["status"] == "running"
    failed = number_of(others[0])
    act(ada, made, "resubmit", str(failed))
    assert subjobs(ada, made)["status"] == "submitted"
    settle()
    assert len(jobs(made)) == 4 and all_states(ada, made)[failed] == "submitted"
    pilot.end(held)
    drive(pilot)
    assert status(made) == "done"


def test_one_subjob_is_killed_and_no_job_of_it_follows(ada: Client) -> None:
    """Queued, running and before it has a job: the others go on."""
    made = numbered(4, maxAttempt=3)
    act(ada, made, "kill", "3", 409)
    refiner.run()
    feeder.run()
    act(ada, made, "kill", "0")
    assert all_states(ada, made) == ["killed", "submitted", "submitted", "submitted"]
    make_jobs()
    assert len(jobs(made)) == 3
    pilot = Pilot()
    (running,) = pilot.fetch(1)
    pilot.start(running)
    number = number_of(running)
    queued = next(n for n in (1, 2, 3) if n != number)
    act(ada, made, "kill", f"{queued},{number}")
    assert all_states(ada, made)[queued] == "killed" and all_states(ada, made)[number] == "running"
    assert Job.objects.get(pk=running["PandaID"]).command_to_pilot == "tobekilled"
    pilot.end(running, "failed")
    drive(pilot)
    assert status(made) == "finished" and subjobs(ada, made)["counts"] == {"killed": 3, "completed": 1}
    assert subjobs(ada, made)["status"] == "completed"
    assert AuditEntry.objects.filter(action="kill subjobs", actor="ada", reason="a reason").count() == 2
    assert "its subjobs have ended" in act(ada, made, "kill", "1", 409)
    act(ada, made, "resubmit", "0")
    act(ada, made, "resubmit", f"{queued}-{queued}")  # the task has not obeyed the first
    drive(pilot)
    assert subjobs(ada, made)["counts"] == {"killed": 1, "completed": 3}


def test_subjobs_with_files_are_killed_and_resubmitted_as_a_whole(ada: Client) -> None:
    add_dataset(A, 5)
    made = groups_task(xml({A: [0, 1]}, {A: [2, 3]}, {A: [4, 0]}), maxAttempt=1)
    refiner.run()
    feeder.run()
    act(ada, made, "kill", "2")
    drive(Pilot(lambda job: "failed" if f"{A}.00003" in job["inFiles"] else "finished"))
    assert all_states(ada, made) == ["completed", "failed", "killed"] and status(made) == "finished"
    act(ada, made, "resubmit", "1-2")
    drive(Pilot())
    assert status(made) == "done" and {file.status for file in files(made)} == {"finished"}


def test_a_killed_or_broken_task_leaves_no_subjob_at_work(ada: Client) -> None:
    killed, broken = numbered(2), groups_task(xml({A: [0]}))
    ada.post(f"/api/v2/tasks/{killed}/commands/", {"command": "kill"}, content_type="application/json")
    drive(Pilot())
    assert (status(killed), status(broken)) == ("aborted", "broken")
    assert subjobs(ada, killed)["status"] == "killed" and subjobs(ada, broken)["status"] == "failed"
    assert act(ada, killed, "resubmit", "0")


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ("", "blank"),
        (" , ", "at least one subjob"),
        ("x", "neither a number"),
        ("3-1", "a range ascends"),
        ("10000", "numbered from 0 to 9999"),
        ("-1", "neither a number"),
        ("1-2-3", "neither a number"),
        ("\u0663", "neither a number"),
        ("1," * 20_000, "30000 characters"),
        (5, "must be"),
    ],
)
def test_numbers_that_are_none_are_refused(ada: Client, numbers: Any, said: str) -> None:
    made = numbered(2)
    body = {"act": "kill", "numbers": numbers}
    answer = ada.post(f"/api/v2/tasks/{made}/subjobs/", body, content_type="application/json")
    assert answer.status_code == 422 and answer.json()["errors"][0]["field"] == "numbers"
    assert said in answer.json()["errors"][0]["message"]


def test_what_cannot_be_asked_for_is_refused(ada: Client, api: Api) -> None:
    made = numbered(2)
    for query in ("?numbers=x", "?numbers=", "?outputs=maybe", "?number=1"):
        assert ada.get(f"/api/v2/tasks/{made}/subjobs/{query}").status_code == 422
    assert [one["number"] for one in subjobs(ada, made, "?numbers=1,7")["subjobs"]] == [1]
    assert "has no subjob 7" in act(ada, made, "resubmit", "7", 409)
    assert "only those that failed" in act(ada, made, "resubmit", "1", 409)
    act(api(name="eve"), made, "kill", "1", 403)
    plain = submit(parameters("lab.u", noInput=True, nEvents=2, nEventsPerJob=1))
    drive(Pilot())
    assert subjobs(ada, plain)["subjobs"] == [] and subjobs(ada, plain)["status"] == "new"
    assert ada.get("/api/v2/tasks/5/subjobs/").status_code == 404


def test_many_subjobs_cost_no_more_statements(ada: Client, django_assert_max_num_queries: Any) -> None:
    made = numbered(60)
    drive(Pilot(without(5)))
    with django_assert_max_num_queries(14):
        assert subjobs(ada, made, "?outputs=true")["counts"] == {"completed": 59, "failed": 1}


def test_a_retry_may_name_subjobs(ada: Client) -> None:
    made = numbered(3)
    drive(Pilot(without(0, 1, 2)))
    body = {"command": "retry", "subjobs": "0,x"}
    url = f"/api/v2/tasks/{made}/commands/"
    assert ada.post(url, body, content_type="application/json").json()["errors"][0]["field"] == "subjobs"
    assert ada.post(url, {**body, "subjobs": "1-2"}, content_type="application/json").status_code == 202
    drive(Pilot())
    assert all_states(ada, made) == ["failed", "completed", "completed"]
    assert ada.post(url, {"command": "retry"}, content_type="application/json").status_code == 202
    assert all_states(ada, made) == ["submitted", "completed", "completed"], "all that failed are tried again"


NONE_FAILED = "has no file to try again: none of the subjobs named has failed or was killed"


def test_a_retry_of_subjobs_of_which_none_has_failed_is_refused_at_the_door(
    ada: Client, client: Client, make_user: Any
) -> None:
    made = numbered(3)
    drive(Pilot(without(0)))
    url = f"/api/v2/tasks/{made}/commands/"
    body = {"command": "retry", "subjobs": "1-2"}
    answer = ada.post(url, body, content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (409, f"Task {made} {NONE_FAILED}.")
    with pytest.raises(command_queue.CommandRefusedError, match=NONE_FAILED):
        command_queue.give_command(made, "retry", by="ada", parameters={"subjobs": "7"})
    client.force_login(make_user("ada"))
    page = client.post(f"/tasks/{made}/do/retry/", {"reason": "again", "subjobs": "2"})
    assert (page.status_code, NONE_FAILED in page.content.decode()) == (409, True)
    assert not Command.objects.filter(task_id=made).exists()
    assert ada.post(url, {**body, "subjobs": "0-2"}, content_type="application/json").status_code == 202
    drive(Pilot())
    assert all_states(ada, made) == ["completed"] * 3


def test_attempts_for_subjobs_that_have_some_left_are_refused_at_the_door(ada: Client) -> None:
    made = numbered(3)
    make_jobs()
    pilot = Pilot()
    first, *_ = pilot.fetch(3)
    pilot.start(first)
    pilot.end(first, "failed")
    settle()
    url, number = f"/api/v2/tasks/{made}/commands/", number_of(first)
    body = {"command": "increase_attempts", "subjobs": str((number + 1) % 3)}
    for command in ("increase_attempts", "retry"):
        answer = ada.post(url, {**body, "command": command}, content_type="application/json")
        said = f"Task {made} has no file of the subjobs named that has used up its attempts."
        assert (answer.status_code, answer.json()["detail"]) == (409, said)
    assert ada.post(url, {**body, "subjobs": str(number)}, content_type="application/json").status_code == 202


def test_inputs_of_a_dataset_may_be_grouped_by_number(ada: Client) -> None:
    add_dataset(A, 4)
    named = [{"lfn": f"{A}.{n:05d}", "boundaryID": group} for n, group in ((3, 1), (0, 0), (1, 1))]
    made = submit(parameters("lab.t", reads(A, files=named), groupBoundaryID=3))
    drive(Pilot())
    assert all_states(ada, made) == ["completed", "completed"]


def test_groups_may_have_any_numbers_and_only_those_that_there_are_are_subjobs(ada: Client) -> None:
    """As many as the largest number would keep the server busy for hours."""
    add_dataset(A, 2)
    named = [{"lfn": f"{A}.{n:05d}", "boundaryID": group} for n, group in ((0, 7), (1, 999_999_999))]
    made = submit(parameters("lab.t", reads(A, files=named), groupBoundaryID=3, maxAttempt=1))
    drive(Pilot(lambda job: "failed" if f"{A}.00000" in job["jobPars"] else "finished"))
    found = subjobs(ada, made)
    assert [(one["number"], one["status"]) for one in found["subjobs"]] == [(7, "failed"), (999_999_999, "completed")]
    assert found["status"] == "failed" and found["counts"] == {"failed": 1, "completed": 1}
    assert act(ada, made, "resubmit", "6-7", 409) == f"Task {made} has no subjob 6."
    assert act(ada, made, "resubmit", "7") == "the command retry was given"


def test_a_task_that_waits_gives_attempts_to_the_subjobs_named(ada: Client) -> None:
    made = numbered(3)
    make_jobs()
    pilot = Pilot()
    jobs_of_pilot = pilot.fetch(3)
    for job in jobs_of_pilot[:2]:
        pilot.start(job)
        pilot.end(job, "failed")
    settle()
    task_url = f"/api/v2/tasks/{made}/commands/"
    assert ada.post(task_url, {"command": "pause"}, content_type="application/json").status_code == 202
    settle()
    number = number_of(jobs_of_pilot[0])
    assert act(ada, made, "resubmit", str(number)) == "the command increase_attempts was given"
    settle()
    assert subjobs(ada, made)["counts"]["failed"] == 1 and all_states(ada, made)[number] == "submitted"
