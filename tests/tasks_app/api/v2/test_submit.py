"""Submitting tasks: who may submit what, and the same submission twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from jedisite.models import AuditEntry
from tasks_app.models import CatalogueDataset, Command, Dataset, File, SubmissionKey, Task, TaskParams

TASKS = "/api/v2/tasks/"
pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Params = Callable[..., dict[str, Any]]


def post(client: Client, body: Any, **headers: str) -> Any:
    return client.post(
        TASKS, body, content_type="application/json", headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def fields(answer: Any) -> list[str]:
    return [e["field"] for e in answer.json()["errors"]]


def test_a_submitted_task_is_registered_and_shown(api: Api, task_params: Params) -> None:
    client = api()
    answer = post(client, task_params(taskPriority=500))
    assert answer.status_code == 201
    body = answer.json()
    assert answer["Location"] == f"{TASKS}{body['id']}/"
    assert body["status"] == "registered" and body["user"] == "ada" and body["task_priority"] == 500
    assert body.pop("warnings") == [] and client.get(answer["Location"]).json() == body
    assert client.get(f"{answer['Location']}params/").json() == task_params(taskPriority=500)


def test_every_fault_is_named_and_nothing_is_stored(
    api: Api, task_params: Params, rows_stored: Callable[[], dict[str, int]]
) -> None:
    client = api()
    before = rows_stored()
    answer = post(client, {**task_params(taskName="", nEvents=-1), "nEventPerJob": 3})
    assert answer.status_code == 422 and answer["Content-Type"] == "application/problem+json"
    assert sorted(fields(answer)) == ["nEventPerJob", "nEvents", "taskName"]
    assert all(e["rule"] and e["message"] for e in answer.json()["errors"])
    assert rows_stored() == before


def test_wildcards_in_names_of_inputs_are_refused_with_the_datasets_that_match(api: Api, task_params: Params) -> None:
    for name in ("user.ada.meas", "user.ada.measured/", "user.ada.other", "user.eve.meas"):
        CatalogueDataset.objects.create(name=name, scope="user.ada", owner="ada")
    item = {"type": "template", "param_type": "input", "value": "${IN}"}
    for wild, hint in (
        ("user.ada.me*", " It matches user.ada.meas, user.ada.measured/."),
        ("user.ada.mea[r-t]", " It matches user.ada.meas."),
        ("user.bob.*", ""),
        ("*", ""),
    ):
        body = task_params(noInput=False, jobParameters=[{**item, "dataset": wild}], dsForIN=wild)
        answer = post(api(), body)
        assert answer.status_code == 422 and sorted(fields(answer)) == ["dsForIN", "jobParameters[0].dataset"]
        said = (
            f"'{wild}' contains a wildcard, which is not expanded here: give whole dataset names, separated by commas."
        )
        assert {e["message"] for e in answer.json()["errors"]} == {said + hint}
    hostile = post(api(), {"jobParameters": {"dataset": "a*"}, "dsForIN": [1, None, "b*"], "dsForX": {"a": "*"}})
    assert hostile.status_code == 422


@pytest.mark.parametrize("role", ["user", "shifter", "production", "administrator"])
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prodSourceLabel": "managed"}, "prodSourceLabel"),
        ({"taskType": "prod"}, "taskType"),
        ({"processingType": "urgent"}, "processingType"),
        ({"prodSourceLabel": "test"}, None),
    ],
)
def test_production_needs_the_production_right(
    api: Api, task_params: Params, role: str, changes: dict[str, str], field: str | None
) -> None:
    answer = post(api(role), task_params(**changes))
    if field and role in ("user", "shifter"):
        assert answer.status_code == 422 and fields(answer) == [field]
    else:
        assert answer.status_code == 201


@pytest.mark.parametrize(
    ("role", "priority", "owner"),
    [("user", 1000, "ada"), ("shifter", 1000, "shifter"), ("production", 5000, "eve"), ("administrator", 5000, "eve")],
)
def test_only_production_sets_owners_and_high_priorities(
    api: Api, task_params: Params, make_user: Callable[..., Any], role: str, priority: int, owner: str
) -> None:
    make_user(owner, role if owner == role else "user")
    answer = post(api(role), task_params(taskPriority=5000, currentPriority=6000, userName=owner))
    task = Task.objects.get(pk=answer.json()["id"])
    stored = TaskParams.objects.get(pk=task.id).params
    assert (task.user, task.task_priority) == (owner, priority)
    # The refiner reads the stored dictionary later, and must not find what was not allowed.
    assert (stored["userName"], stored["taskPriority"]) == (owner, priority)
    assert stored["currentPriority"] == (1000 if priority == 1000 else 6000)
    most = "1000 is the maximum without the production right, and the task gets that."
    given = (("taskPriority", 5000), ("currentPriority", 6000)) if priority == 1000 else ()
    assert answer.json()["warnings"] == [f"{name} {number} is too high: {most}" for name, number in given]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"walltime": 3600}, "has no effect without cpuTime"),
        ({"walltime": 3600, "walltimeUnit": "kSI2kseconds"}, "has no effect without cpuTime"),
        ({"walltime": 3600, "cpuTime": 10}, "has no effect: the walltime of jobs is calculated from cpuTime (10)"),
        ({"walltime": 3600, "walltimeUnit": "kSI2kseconds", "cpuTime": 10}, ""),
        ({"walltime": -1, "cpuTime": 10}, ""),
        ({"walltime": -1}, ""),
        ({"walltime": 3600, "taskType": "test", "prodSourceLabel": "test"}, ""),
    ],
)
def test_a_walltime_that_has_no_effect_or_counts_as_no_time_is_told_at_the_door(
    api: Api, task_params: Params, changes: dict[str, Any], warned: str
) -> None:
    answer = post(api(), task_params(vo="atlas", **changes))
    assert answer.status_code == 201, answer.json()
    said = answer.json()["warnings"]
    assert len(said) == bool(warned) and all(one.startswith(f"walltime 3600 {warned}") for one in said)


def test_what_has_no_effect_beside_other_parameters_is_told_in_warnings(api: Api, task_params: Params) -> None:
    answer = post(api(), task_params(disableAutoRetry=True, maxAttempt=5))
    assert answer.status_code == 201, answer.json()
    said = "maxAttempt 5 has no effect with disableAutoRetry: each input is tried once."
    assert answer.json()["warnings"] == [said]


def test_a_goal_is_shown_in_per_cent_as_it_was_submitted(api: Api, task_params: Params) -> None:
    client = api()
    made = post(client, task_params(goal=50)).json()["id"]
    Task.objects.filter(pk=made).update(goal=505)  # as the refiner keeps it
    assert client.get(f"{TASKS}{made}/").json()["goal"] == 50.5


def test_what_a_command_line_leaves_unfilled_is_told_at_the_door(api: Api, task_params: Params) -> None:
    line = [{"type": "constant", "value": "-- 'cat %IN ${inn} ${sn}'"}]
    answer = post(api(), task_params(jobParameters=line))
    assert answer.status_code == 201, answer.json()
    shell, files = answer.json()["warnings"]
    assert shell == "${sn} is left to the shell; did you mean ${SN}?"
    assert files.startswith("Nothing replaces %IN in the command")


def test_prun_s_users_are_told_of_a_priority_that_they_do_not_get(api: Api, task_params: Params) -> None:
    wish = task_params(currentPriority=1100, processingType="panda-client-1.6.0-jedi-run")
    for priority, name in ((1100, "user.ada.a"), (1000, "user.ada.b")):
        body = {"task_parameters": wish | {"currentPriority": priority, "taskName": name}}
        said = api().post("/api/v1/task/submit", body, content_type="application/json").json()
        warned = "Warning: --priority 1100 is too high: 1000 is the maximum" in said["message"]
        assert said["success"] is True and warned is (priority > 1000), said


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({}, "skipScout"),
        ({"processingType": "panda-client-2.2.0-jedi-run"}, "--expertOnly_skipScout"),
        ({"official": True}, ""),
    ],
)
def test_a_user_who_wants_no_scouts_is_told_that_the_task_has_them(
    api: Api, task_params: Params, changes: dict[str, Any], option: str
) -> None:
    answer = post(api("production"), task_params(vo="atlas", skipScout=True, **changes))
    assert answer.status_code == 201, answer.json()
    said = f"{option} has no effect: only production and official tasks can run without scouts."
    assert [one for one in answer.json()["warnings"] if "no effect" in one] == ([said] if option else [])


def test_what_is_asked_of_a_nucleus_where_tasks_get_none_is_told(api: Api, task_params: Params) -> None:
    given = {"t1Weight": 3, "fullChain": "capable", "taskBrokerOnMaster": True}
    answer = post(api(), task_params(**given))
    assert answer.status_code == 201, answer.json()
    said = [one for one in answer.json()["warnings"] if "get no nucleus" in one]
    assert [one.partition(" ")[0] for one in said] == ["t1Weight", "taskBrokerOnMaster", "fullChain"]


def test_a_name_that_is_not_known_is_never_answered_with_one_that_is_refused(api: Api, task_params: Params) -> None:
    answer = post(api(), task_params(nosuchparam=1, encJobParam=True))
    assert answer.status_code == 422 and "encJobParams" not in answer.content.decode()


def test_who_submits_for_another_is_on_record(api: Api, task_params: Params, make_user: Callable[..., Any]) -> None:
    make_user("eve")
    post(api("production"), task_params(userName="eve"))
    assert AuditEntry.objects.filter(actor="production", action="submit for", details={"user": "eve"}).exists()


def test_the_parent_is_the_newest_own_task_of_the_name(
    api: Api, task_params: Params, make_task: Callable[..., Task]
) -> None:
    make_task(name="user.ada.parent")
    newest = make_task(name="user.ada.parent", status="done")
    make_task(name="user.ada.parent", user="eve")
    answer = post(api(), task_params(parentTaskName="user.ada.parent"))
    assert answer.json()["parent_id"] == newest.id


@pytest.mark.parametrize(("name", "value"), [("parentTaskName", "user.ada.nothing"), ("parent_tid", 77)])
def test_an_unknown_parent_is_a_fault(
    api: Api, task_params: Params, rows_stored: Callable[[], dict[str, int]], name: str, value: Any
) -> None:
    client = api()
    before = rows_stored()
    answer = post(client, task_params(**{name: value}), idempotency_key="k")
    assert answer.status_code == 422 and fields(answer) == [name]
    assert rows_stored() == before


@pytest.mark.parametrize(
    ("status", "code"),
    [("running", 409), ("pending", 409), ("registered", 409), ("broken", 201), ("done", 202), ("failed", 202)],
)
def test_a_unique_name_runs_an_ended_task_again_and_is_refused_while_one_is_open(
    api: Api, task_params: Params, make_task: Callable[..., Task], status: str, code: int
) -> None:
    old = make_task(name="user.ada.test", status=status, vo="local", prod_source_label="user")
    make_task(name="user.ada.test", user="eve", vo="local", prod_source_label="user")
    answer = post(api(), task_params(uniqueTaskName=True, taskType="anal"))
    assert answer.status_code == code
    if code == 409:
        assert str(old.id) in answer.json()["detail"] and not Command.objects.exists()
        assert status in answer.json()["detail"] or status == "registered"
    elif code == 201:
        assert answer.json()["id"] != old.id and not Command.objects.exists()
    else:
        assert answer["Location"] == f"{TASKS}{old.id}/"
        body = answer.json()
        assert (body["id"], body["code"]) == (old.id, 3) and status in body["sentence"]
        assert Command.objects.get(task=old).parameters == {"changes": {"nEvents": 10}} == {"changes": body["changes"]}
    assert post(api(), task_params(uniqueTaskName=False)).status_code == 201


@pytest.mark.parametrize("status", ["running", "done"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"vo": "atlas"}, {}),
        ({"vo": "atlas"}, {"taskType": "anal", "vo": "lab"}),
        ({"vo": "local", "prod_source_label": "test"}, {}),
        ({"vo": "local", "task_type": "prod", "prod_source_label": "managed"}, {"taskType": "prod"}),
    ],
)
def test_a_name_that_is_to_be_unique_is_refused_when_a_task_of_another_kind_has_it(
    api: Api, task_params: Params, make_task: Callable[..., Task], status: str, old: dict[str, str], new: dict[str, str]
) -> None:
    client = api("production")
    named = make_task(name="user.ada.test", user="production", status=status, **{"prod_source_label": "user", **old})
    make_task(name="user.ada.test", user="eve", vo="local", prod_source_label="user")
    answer = post(client, task_params(uniqueTaskName=True, **new))
    assert answer.status_code == 409 and f"The task {named.id} (" in answer.json()["detail"]
    assert post(client, task_params(uniqueTaskName=True, taskName="user.ada.other", **new)).status_code == 201
    assert post(client, task_params(**new)).status_code == 201


def test_a_submission_that_runs_a_task_again_can_be_repeated_under_its_key(
    api: Api, task_params: Params, make_task: Callable[..., Task]
) -> None:
    make_task(name="user.ada.test", status="done", vo="local", prod_source_label="user")
    client, params = api(), task_params(uniqueTaskName=True, taskType="anal")
    answers = [post(client, params, idempotency_key="one") for _ in range(2)]
    assert [a.status_code for a in answers] == [202, 202] and answers[0].json() == answers[1].json()
    assert Command.objects.count() == 1


def test_a_running_task_is_changed_in_place_when_that_is_allowed(
    api: Api, task_params: Params, make_task: Callable[..., Task]
) -> None:
    old = make_task(name="user.ada.test", vo="local", prod_source_label="user", split_rule="NF=1")
    TaskParams.objects.create(task=old, params=task_params(taskType="anal"))
    client, body = api(), task_params(taskType="anal", nFilesPerJob=4)
    answer = client.post(f"{TASKS}?allow_active=true", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (200, 5)
    old.refresh_from_db()
    assert old.split_rule == "NF=4"
    assert client.post(f"{TASKS}?allow=1", body, content_type="application/json").status_code == 422


def test_a_user_has_so_many_active_tasks(api: Api, task_params: Params, settings: Any) -> None:
    settings.JEDI_MOST_ACTIVE_TASKS = 1
    client = api()
    codes = [post(client, task_params(taskName=f"user.ada.{n}")).status_code for n in range(3)]
    assert codes == [201, 201, 409]


def test_the_same_key_gets_the_same_task(api: Api, task_params: Params) -> None:
    client = api()
    first = post(client, task_params(uniqueTaskName=True), idempotency_key="one")
    again = post(client, task_params(uniqueTaskName=True), idempotency_key="one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json() and again["Location"] == first["Location"]
    assert Task.objects.count() == 1


def test_a_key_belongs_to_its_caller_and_body(api: Api, task_params: Params) -> None:
    first = post(api(), task_params(), idempotency_key="one")
    other = post(api("user", name="eve"), task_params(), idempotency_key="one")
    assert first.json()["id"] != other.json()["id"]
    changed = post(api(), task_params(nEvents=99), idempotency_key="one")
    assert changed.status_code == 422 and fields(changed) == ["Idempotency-Key"]


def test_a_key_is_forgotten_after_a_day(api: Api, task_params: Params) -> None:
    client = api()
    first = post(client, task_params(), idempotency_key="one")
    SubmissionKey.objects.update(created=timezone.now() - timedelta(hours=24, minutes=1))
    again = post(client, task_params(nEvents=3), idempotency_key="one")
    assert again.status_code == 201 and again.json()["id"] != first.json()["id"]
    assert SubmissionKey.objects.count() == 1


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\u00e9", "tab\there"])
def test_a_key_that_is_no_key_is_refused(api: Api, task_params: Params, key: str) -> None:
    answer = post(api(), task_params(), idempotency_key=key)
    assert answer.status_code == 422 and fields(answer) == ["Idempotency-Key"]


MERGE = {
    "mergeOutput": True,
    "log": {"type": "template", "param_type": "log", "dataset": "user.ada.l", "value": "l.${SN}"},
}


@pytest.mark.parametrize("text", ["${SN/9999}", "${SN:99}", "${IN%.txt}", "${SURL:-x}"])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        (
            lambda text: {"jobParameters": [{"type": "constant", "value": f"-- 'echo {text}'"}]},
            "jobParameters[0].value",
        ),
        (lambda text: {"jobParameters": [_output(f"--out={text}.${{SN}}")]}, "jobParameters[0].value"),
        (lambda text: {"jobParameters": [_output(f"--in {text} --out=x.${{SN}}")]}, "jobParameters[0].value"),
        (lambda text: {"log": {**MERGE["log"], "value": f"l.{text}.${{SN}}"}}, "log.value"),
        (lambda text: {"log_merge": [{**MERGE["log"], "value": f"l.{text}.${{SN}}"}]}, "log_merge[0].value"),
        (lambda text: {"buildSpec": {"jobParameters": f"-o ${{OUT}} {text}"}}, "buildSpec.jobParameters"),
        (lambda text: {"preproSpec": {"jobParameters": f"-p {text}"}}, "preproSpec.jobParameters"),
        (lambda text: {**MERGE, "mergeSpec": {"jobParameters": f"-p {text}"}}, "mergeSpec.jobParameters"),
    ],
)
def test_a_placeholder_of_ours_that_is_malformed_is_refused_wherever_it_stands(
    api: Api, task_params: Params, text: str, place: Callable[[str], dict[str, Any]], field: str
) -> None:
    answer = post(api(), task_params(**place(text)))
    assert answer.status_code == 422 and fields(answer) == [field]
    assert answer.json()["errors"][0]["rule"] == "placeholder"


CONTROL = ["\n", "\r\n", "\x01", "\x7f", "\x85", "\u2028", "\u202e"]


@pytest.mark.parametrize("character", CONTROL)
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (lambda text: {"taskName": f"user.ada.a{text}Bcc: eve@example.org"}, "taskName"),
        (lambda text: {"workingGroup": f"a{text}b"}, "workingGroup"),
        (lambda text: {"includedSite": [f"A{text}*"]}, "includedSite[0]"),
        (
            lambda text: {"jobParameters": [{**_output("a.${SN}"), "dataset": f"user.ada{text}x"}]},
            "jobParameters[0].dataset",
        ),
        (
            lambda text: {"jobParameters": [{**_output("a.${SN}"), "destination": f"X{text}"}]},
            "jobParameters[0].destination",
        ),
        (lambda text: {"jobParameters": [_output(f"a{text}b.${{SN}}")]}, "jobParameters[0].value"),
    ],
)
def test_names_have_no_control_characters(
    api: Api, task_params: Params, changes: Callable[[str], dict[str, Any]], field: str, character: str
) -> None:
    answer = post(api(), task_params(**changes(character)))
    assert answer.status_code == 422 and fields(answer) == [field]
    body = {"task_parameters": task_params(**changes(character))}
    assert not api().post("/api/v1/task/submit", body, content_type="application/json").json()["success"]
    assert not Task.objects.exists()


def test_command_lines_may_have_several_lines(api: Api, task_params: Params) -> None:
    lines = [{"type": "constant", "value": "-- 'echo a\necho\tb'"}]
    assert post(api(), task_params(jobParameters=lines, cliParams="prun \\\n --exec x")).status_code == 201


def _output(value: str) -> dict[str, str]:
    return {"type": "template", "param_type": "output", "dataset": "user.ada.out", "value": value}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["key", "unique name"])
def test_many_at_once_make_one_task(make_token: Callable[..., str], task_params: Params, how: str) -> None:
    token, clients = make_token(), 6
    ready = threading.Barrier(clients)
    codes: list[int] = []

    def submit() -> None:
        client = Client(headers={"authorization": f"Bearer {token}"})
        ready.wait()
        try:
            if how == "key":
                answer = post(client, task_params(), idempotency_key="one")
            else:
                answer = post(client, task_params(uniqueTaskName=True, taskType="anal"))
            codes.append(answer.status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=submit) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Task.objects.count() == 1
    assert sorted(codes) == ([201] * clients if how == "key" else [201] + [409] * (clients - 1))


def test_whoever_submits_for_somebody_else_cannot_ask_for_their_secrets(api: Api, task_params: Params) -> None:
    api("user", name="eve")
    refused = post(api("production"), task_params(userName="eve", useSecrets=True))
    assert refused.status_code == 422 and fields(refused) == ["useSecrets"]
    assert post(api("production"), task_params(useSecrets=True)).status_code == 201


@pytest.mark.parametrize(
    ("xml", "field", "said"),
    [
        (
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><submission>&b;</submission>",
            "loadXML",
            "document type",
        ),
        ("<submission><job><output>../x</output></job></submission>", "loadXML.job[0].output[0]", "file name"),
        ("<submission><job/></submission>" + " " * 1_000_000, "loadXML", "1000000"),
    ],
)
def test_hostile_groups_of_files_are_refused_with_their_place(
    api: Api, task_params: Params, xml: str, field: str, said: str
) -> None:
    answer = post(api(), task_params(loadXML=xml))
    assert answer.status_code == 422
    assert any(
        e["field"] == field and said in e["message"].replace(",", "").replace("\xa0", "")
        for e in answer.json()["errors"]
    )


def test_removing_files_needs_their_names_and_the_right_to_the_task(api: Api, make_task: Callable[..., Task]) -> None:
    def command(who: Client, task: Task, **more: str) -> Any:
        body = {"command": "remove_files", **more}
        return who.post(f"{TASKS}{task.id}/commands/", body, content_type="application/json")

    own, bobs = make_task(status="running"), make_task(status="running", user="bob")
    for task in (own, bobs):
        read = Dataset.objects.create(task=task, name="user.ada.in", type="input", files=2)
        for lfn in ("a", "b"):
            File.objects.create(task_id=task.id, dataset_id=read.pk, lfn=lfn, type="input", status="ready")
    assert fields(command(api(), own)) == ["files"]
    answer = command(api(), own, files="a, ada:c, d")
    assert fields(answer) == ["files"]
    assert answer.json()["errors"][0]["message"] == f"Task {own.id} reads no file 'c', 'd'."
    assert not Command.objects.filter(task=own).exists()
    assert command(api(), bobs, files="a").status_code == 403
    assert command(api(), own, files="a, b").status_code == 202
    assert Command.objects.get(task=own).parameters == {"files": "a, b"}
