"""Names that no table of the site has are refused at every door, with what may have been meant."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from brokerage_app.models import GlobalShare, Queue, Site, StorageEndpoint, WorkQueue
from tasks_app.models import CatalogueDataset, CatalogueFile, Command, Dataset, Task, TaskParams, TaskStatusLog
from tasks_app.submission import known_names

TASKS = "/api/v2/tasks/"
pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Params = Callable[..., dict[str, Any]]


@pytest.fixture
def grid(db: None) -> None:
    for name, site, cloud in (("CERN_PROD", "CERN", "CERN"), ("CERN_TEST", "CERN", "CERN"), ("BNL_PROD", "BNL", "US")):
        Queue.objects.create(name=name, site_name=site, cloud=cloud)
    Site.objects.create(name="BNL", role="nucleus")
    Site.objects.create(name="CERN", role="satellite")
    StorageEndpoint.objects.create(name="BNL_DISK", site_name="BNL")
    GlobalShare.objects.create(name="Analysis", value=60)
    GlobalShare.objects.create(name="Express", value=40)
    for order, (vo, name) in enumerate((("local", "analysis"), ("atlas", "urgent"))):
        WorkQueue.objects.create(name=name, type="user", vo=vo, share=1, order=order, status="active")


def post(client: Client, body: Any, path: str = TASKS) -> Any:
    return client.post(path, body, content_type="application/json")


def faults(answer: Any) -> dict[str, str]:
    return {e["field"]: e["message"] for e in answer.json()["errors"]}


def reading(*datasets: str, **more: Any) -> dict[str, Any]:
    item = {"type": "template", "param_type": "input", "value": "--in=${IN/L}", "dataset": ",".join(datasets)}
    return {"noInput": False, "nEvents": None, "nEventsPerJob": None, "jobParameters": [item], **more}


@pytest.fixture
def catalogue(db: None) -> None:
    for name, owner in (
        ("mc23_13p6TeV.1.hits", ""),
        ("user.bob.hits", "bob"),
        ("user.ada.measurements", "ada"),
        ("user.ada.box/", "ada"),
    ):
        CatalogueDataset.objects.create(name=name, scope="x", owner=owner)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("user.ada.mesurements", " Did you mean user.ada.measurements?"),
        ("usr.ada.measurements", " Did you mean user.ada.measurements?"),
        ("mc23_13p6TeV.1.hit", " Did you mean mc23_13p6TeV.1.hits?"),
        ("user.bob.hits/", " Did you mean user.bob.hits?"),
        ("nothing.of.the.kind", ""),
    ],
)
def test_an_input_that_is_not_there_is_refused_with_what_may_be_meant(
    api: Api, task_params: Params, catalogue: None, given: str, meant: str
) -> None:
    answer = post(api(), task_params(**reading("user.ada.measurements", given)))
    said = f"There is no dataset '{given}'.{meant} To let the task wait for its input, set waitInput."
    assert answer.status_code == 422 and faults(answer) == {"jobParameters[0].dataset": said}
    assert not Task.objects.exists()
    more = post(api(), task_params(**reading("user.ada.measurements"), dsForIN=given))
    assert faults(more) == {"dsForIN": said}


def test_logs_are_meant_last_and_names_that_only_begin_alike_are_not_meant(api: Api, task_params: Params) -> None:
    for name in ("user.ada.ch1.log/", "user.ada.ch1_out.txt/", "user.ada.meas"):
        CatalogueDataset.objects.create(name=name, scope="user.ada", owner="ada")
    for given, meant in (
        ("user.ada.ch1", " Did you mean user.ada.ch1_out.txt/?"),
        ("user.ada.ch2.log", " Did you mean user.ada.ch1.log/?"),
        ("user.ada.nix", ""),
    ):
        said = faults(post(api(), task_params(**reading(given, "user.ada.meas"))))
        assert said["jobParameters[0].dataset"].startswith(
            f"There is no dataset '{given}'.{meant} To let the task wait"
        )


@pytest.mark.parametrize(
    "changes",
    [
        reading("mc23_13p6TeV.1.hits", "user.bob.hits"),
        reading("user.ada.box/"),
        reading("user.ada.box"),
        reading("seq_number"),
        reading("user.ada.new", waitInput=True),
        reading("user.ada.new", ignoreMissingInDS=True),
        reading("user.ada.new", allowEmptyInput=True),
        reading("user.ada.new", parentTaskName="user.ada.first"),
        reading("user.ada.new/", parentTaskName="user.ada.first"),
        reading("user.ada.new.7", parentTaskName="user.ada.first"),
        reading("user.ada.coming"),
        reading("user.ada.coming/"),
    ],
    ids=str,
)
def test_an_input_that_is_there_or_may_come_is_taken(
    api: Api,
    task_params: Params,
    catalogue: None,
    make_task: Callable[..., Task],
    make_dataset: Callable[..., Dataset],
    changes: dict[str, Any],
) -> None:
    parent = make_task(name="user.ada.first", status="running")
    make_dataset(parent, type="output", name="user.ada.new.7", container_name="user.ada.new/")
    output = {"type": "template", "param_type": "output", "value": "o.$JEDITASKID.${SN}", "dataset": "user.ada.coming"}
    assert post(api(), task_params(taskName="user.ada.makes", jobParameters=[output])).status_code == 201
    answer = post(api(), task_params(**changes))
    assert answer.status_code == 201, answer.content


def test_an_input_that_the_parent_does_not_make_is_refused_with_what_it_makes(
    api: Api, task_params: Params, catalogue: None
) -> None:
    output = {"type": "template", "param_type": "output", "value": "o.${SN}", "dataset": "user.ada.ch1_out"}
    parent = post(api(), task_params(taskName="user.ada.makes", jobParameters=[output])).json()["id"]
    for given, meant in (("user.ada.ch1_oot/", " Did you mean user.ada.ch1_out?"), ("nothing", "")):
        answer = post(api(), task_params(**reading(given, parent_tid=parent, noWaitParent=True)))
        said = (
            f"There is no dataset '{given}', and task {parent}, the parent, makes no dataset of this name.{meant} "
            "To let the task wait for its input, set waitInput."
        )
        assert answer.status_code == 422 and faults(answer) == {"jobParameters[0].dataset": said}
    log = {"type": "template", "param_type": "log", "value": "p.${SN}.tgz", "dataset": "user.ada.par.log"}
    output = {**output, "value": "p.${SN}", "dataset": "user.ada.par_p.txt"}
    two = post(api(), task_params(taskName="user.ada.par", log=log, jobParameters=[output])).json()["id"]
    told = faults(post(api(), task_params(**reading("user.ada.par/", parent_tid=two, noWaitParent=True))))
    assert "Did you mean user.ada.par_p.txt?" in told["jobParameters[0].dataset"], "not the log"
    for n, given in enumerate(("user.ada.ch1_out", "user.ada.ch1_out/", f"user.ada.ch1_out.{parent}")):
        wish = reading(given, parent_tid=parent, noWaitParent=True)
        assert post(api(), task_params(taskName=f"user.ada.c{n}", **wish)).status_code == 201


def test_an_input_that_its_maker_left_empty_is_refused_with_what_became_of_the_maker(
    api: Api, task_params: Params, make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    box = CatalogueDataset.objects.create(name="user.ada.bad_out/", scope="x", owner="ada", open=True)
    first = make_task(name="user.ada.bad", status="failed")
    made = make_dataset(first, type="output", name=f"user.ada.bad_out.{first.id}", container_name=box.name)

    def said(given: str, **more: Any) -> str:
        answer = post(api(), task_params(taskName=f"user.ada.t{Task.objects.count()}", **reading(given, **more)))
        assert answer.status_code in (201, 422), answer.content
        return faults(answer)["jobParameters[0].dataset"] if answer.status_code == 422 else ""

    why, wait = (
        f"task {first.id}, which makes it, has failed.",
        " To let the task wait for its input, set waitInput.",
    )
    for given in (box.name, "user.ada.bad_out"):
        assert said(given) == f"'{given}' has no files, and {why}{wait}"
        assert said(given, waitInput=True) == ""
    assert said(made.name).startswith(f"There is no dataset '{made.name}', and {why}")
    inner = CatalogueDataset.objects.create(name=made.name, scope="x", owner="ada", open=False)
    box.members.add(inner)
    assert said(box.name) == f"'{box.name}' has no files, and {why}{wait}", "a closed dataset gets none"
    inner.open = True
    inner.save()
    assert said(box.name) == "", "an open one may"
    inner.open = False
    inner.save()
    second = make_task(name="user.ada.more", status="running")
    fills = make_dataset(second, type="output", name=f"user.ada.bad_out.{second.id}", container_name=box.name)
    assert said(box.name) == "", "another task fills the container"
    Task.objects.filter(pk=second.id).update(status="broken")
    assert f"task {second.id}, which makes it, is broken" in said(box.name)
    fills.delete()
    CatalogueFile.objects.create(
        dataset=inner, lfn="f", scope="x", guid="g", size=1, adler32="0" * 8, endpoint="E", url="file:///f"
    )
    assert said(box.name) == ""


@pytest.mark.parametrize("status", ["failed", "broken", "aborted"])
def test_a_parent_that_makes_nothing_more_is_refused(
    api: Api, task_params: Params, make_task: Callable[..., Task], catalogue: None, status: str
) -> None:
    parent = make_task(user="ada", name="user.ada.first", status=status)
    said = f"Task {parent.id} is {status}, but it must be done or finished before its child starts. Retry the parent first."
    for field, value in (("parent_tid", parent.id), ("parentTaskName", parent.name)):
        answer = post(api(), task_params(**reading("user.ada.measurements", **{field: value})))
        assert answer.status_code == 422 and faults(answer) == {field: said}
    assert Task.objects.count() == 1


def test_files_that_a_task_names_are_in_the_dataset_or_may_come(api: Api, task_params: Params, catalogue: None) -> None:
    CatalogueDataset.objects.update(open=False)
    closed = CatalogueDataset.objects.get(name="user.ada.measurements")
    box = CatalogueDataset.objects.get(name="user.ada.box/")
    box.members.add(closed)
    growing = CatalogueDataset.objects.create(name="user.ada.growing", scope="x", owner="ada", open=True)
    elsewhere = CatalogueDataset.objects.create(name="user.ada.elsewhere", scope="x", owner="ada", open=False)
    for dataset, *lfns in ((closed, "m1.txt", "m9.txt"), (growing, "g1.txt"), (elsewhere, "m99.txt")):
        CatalogueFile.objects.bulk_create(
            CatalogueFile(
                dataset=dataset,
                lfn=lfn,
                scope="x",
                guid=lfn,
                size=1,
                adler32="0" * 8,
                endpoint="E",
                url=f"file:///{lfn}",
            )
            for lfn in lfns
        )

    def refused(dataset: str, *files: object) -> dict[str, str]:
        wish = reading(*dataset.split(","))
        wish["jobParameters"][0]["files"] = list(files)
        answer = post(api(), task_params(taskName=f"user.ada.t{Task.objects.count()}", **wish))
        assert answer.status_code in (201, 422), answer.content
        return faults(answer) if answer.status_code == 422 else {}

    for name in ("user.ada.measurements", "user.ada.box/", "user.ada.box"):
        said = f"'m09.txt' is not in {name}. Did you mean m9.txt?"
        assert refused(name, "m1.txt", {"lfn": "x:m09.txt"}) == {"jobParameters[0].files[1]": said}
        assert refused(name, "m99.txt") == {"jobParameters[0].files[0]": f"'m99.txt' is not in {name}."}, (
            "another number"
        )
    assert refused("user.ada.measurements", "zzz") == {
        "jobParameters[0].files[0]": "'zzz' is not in user.ada.measurements."
    }
    assert refused("user.ada.measurements", "m1.txt", "x:m9.txt") == {}
    assert refused("user.ada.growing", "g1.txt", "g2.txt") == {}
    assert refused("user.ada.measurements,user.ada.elsewhere", "m1.txt", "m99.txt") == {}
    assert "any of the 2 datasets of the item" in str(refused("user.ada.measurements,user.ada.elsewhere", "m77"))


def test_what_a_task_that_ended_was_to_make_is_not_there(api: Api, task_params: Params) -> None:
    output = {"type": "template", "param_type": "output", "value": "o.$JEDITASKID.${SN}", "dataset": "user.ada.coming"}
    post(api(), task_params(taskName="user.ada.makes", jobParameters=[output]))
    Task.objects.update(status="aborted")
    assert post(api(), task_params(**reading("user.ada.coming"))).status_code == 422


def test_many_unknown_inputs_take_few_statements(
    api: Api, task_params: Params, catalogue: None, django_assert_max_num_queries: Any
) -> None:
    client, params = api(), task_params(**reading(*(f"user.ada.measurement{n}" for n in range(50))))
    client.get("/api/v2/me/")
    with django_assert_max_num_queries(20):
        answer = post(client, params)
    assert answer.status_code == 422 and sum("Did you mean" in e["message"] for e in answer.json()["errors"]) == 10


WRONG = [
    ({"site": "CERN_PROF"}, "site", "There is no queue 'CERN_PROF'. Did you mean CERN_PROD?"),
    (
        {"site": "BNL_PROD,NOWHERE"},
        "site",
        "There is no queue 'NOWHERE'; this site has BNL_PROD, CERN_PROD, CERN_TEST.",
    ),
    ({"site": "CERN"}, "site", "'CERN' is a site and not a queue; its queues are CERN_PROD, CERN_TEST."),
    ({"includedSite": ["BNL_PROD", "cern_prod"]}, "includedSite", "'cern_prod'. Did you mean CERN_PROD?"),
    ({"includedSite": "BNL_PROD, XX*"}, "includedSite", "No queue matches 'XX*'"),
    ({"excludedSite": ["BNL_PRODS"]}, "excludedSite", "Did you mean BNL_PROD?"),
    ({"excludedSite": "[XYZ]?"}, "excludedSite", "No queue matches '[XYZ]?'"),
    ({"cloud": "ES"}, "cloud", "There is no cloud 'ES'; this site has CERN, US."),
    ({"nucleus": "CERN"}, "nucleus", "There is no nucleus 'CERN'; this site has BNL."),
    (
        {"gshare": "Expres"},
        "gshare",
        "'Expres' is not a global share (did you mean Express?); the shares for tasks are",
    ),
    (
        {"transPath": "http://pandaserver-doma.cern.ch:25080/trf/user/run_comand"},
        "transPath",
        "There is no transform 'run_comand'. Did you mean run_command?",
    ),
    (
        {"workQueueName": "analysys", "prodSourceLabel": "test", "taskType": "test"},
        "workQueueName",
        "There is no work queue 'analysys': this site has none for tasks of label test",
    ),
    ({"workQueueName": "analysys"}, "workQueueName", "There is no work queue 'analysys'. Did you mean analysis?"),
    ({"workQueueName": "urgent"}, "workQueueName", "this site has analysis."),
    ({"destination": "BNL_DISC"}, "destination", "There is no storage endpoint 'BNL_DISC'. Did you mean BNL_DISK?"),
    ({"transPath": "run_comand"}, "transPath", "There is no transform 'run_comand'. Did you mean run_command?"),
    ({"buildSpec": {"jobParameters": "x", "transPath": "nope"}}, "buildSpec.transPath", "There is no transform 'nope'"),
    ({"transPath": "file:///etc/passwd"}, "transPath", "from https:// or http:// only, not 'file:///etc/passwd'"),
    ({"taskType": "analysis"}, "taskType", "Expected one of prod, anal, test; got 'analysis'."),
    ({"skipFilesUsedBy": [77]}, "skipFilesUsedBy", "There is no task 77."),
    (
        {
            "log": {"type": "template", "param_type": "log", "value": "run_command", "dataset": "user.ada.log"},
            "nFiles": 1,
            "nFilesPerJob": 1,
            "nEvents": 1,
            "nEventsPerJob": 1,
        },
        "log.value",
        "'run_command' is reserved for the transform in a job's folder; choose another name for the output.",
    ),
]


@pytest.mark.parametrize(
    ("changes", "field", "sentence"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_name_that_is_not_there_is_refused_with_what_may_be_meant(
    api: Api, task_params: Params, grid: None, changes: dict[str, Any], field: str, sentence: str
) -> None:
    answer = post(api(), task_params(**changes))
    assert answer.status_code == 422 and answer["Content-Type"] == "application/problem+json"
    (fault,) = faults(answer).items()
    assert fault[0] == field and sentence in fault[1]
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"site": None, "includedSite": None, "excludedSite": [], "cloud": None, "nucleus": None, "gshare": None},
        {
            "site": "",
            "includedSite": "",
            "excludedSite": "",
            "cloud": "",
            "gshare": "",
            "workQueueName": "",
            "transPath": "",
        },
        {"site": "AUTO"},
        {"includedSite": ["AUTO"]},
        {"includedSite": "BNL_PROD,AUTO", "excludedSite": ["CERN_*", ""]},
        {"site": "BNL_PROD"},
        {"site": "BNL_PROD, CERN_PROD"},
        {"includedSite": ["*_PROD"], "excludedSite": "CERN_????"},
        {"cloud": "WORLD"},
        {"cloud": "US", "nucleus": "BNL", "gshare": "Express", "workQueueName": "analysis"},
        {"vo": "atlas", "workQueueName": "urgent"},
        {"taskType": "test", "prodSourceLabel": "test"},
        {"cloud": "anything", "cloudAsVO": True},
        {"destination": "BNL_DISK", "transPath": "run_command"},
        {"transPath": "http://pandaserver-doma.cern.ch:25080/trf/user/run_command"},
    ],
)
def test_names_that_are_there_and_those_that_stand_for_no_wish_are_taken(
    api: Api, task_params: Params, grid: None, changes: dict[str, Any]
) -> None:
    answer = post(api(), task_params(**changes))
    assert answer.status_code == 201 and answer.json()["warnings"] == []


def test_a_storage_endpoint_is_no_queue_and_the_queues_of_its_site_are_told(
    api: Api, task_params: Params, grid: None
) -> None:
    answer = post(api(), task_params(site="BNL_DISK", includedSite="BNL_DISK"))
    queues = ", ".join(Queue.objects.filter(site_name="BNL").order_by("name").values_list("name", flat=True))
    said = f"'BNL_DISK' is a storage endpoint and not a queue; the queues of its site are {queues}."
    assert queues and faults(answer) == {"site": said, "includedSite": said}


def test_before_the_first_queue_any_queue_is_unknown_and_other_tasks_are_taken(api: Api, task_params: Params) -> None:
    answer = post(api(), task_params(site="LOCAL", excludedSite="A*", gshare="User", nucleus="X", destination="D"))
    assert faults(answer) == {
        "site": "There is no queue 'LOCAL': this site has none.",
        "excludedSite": "No queue matches 'A*': this site has none.",
        "nucleus": "There is no nucleus 'X': this site has none.",
        "gshare": "'User' is not a global share: this site has none.",
        "destination": "There is no storage endpoint 'D': this site has none.",
    }
    assert post(api(), task_params()).status_code == 201


def test_of_its_own_addresses_a_site_knows_all_transforms(
    api: Api, task_params: Params, grid: None, settings: Any
) -> None:
    settings.JEDI_SERVER_URL = "https://here.example"
    own = "https://here.example/trf/user"
    said = faults(post(api(), task_params(transPath=f"{own}/xxx")))
    assert said["transPath"].startswith("There is no transform 'xxx'; this site has ")
    assert post(api(), task_params(transPath=f"{own}/run_command")).json()["warnings"] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"transPath": "https://example.org/trf/my.sh"},
            "transPath: 'https://example.org/trf/my.sh' is outside this site",
        ),
        ({"transPath": "http://pandaserver-doma.cern.ch:25080/trf/user/runGen-00-00-02"}, "runGen-00-00…"),
        (
            {"transPath": "Sim_tf.py", "transHome": "AtlasOffline-21.0.15"},
            "transPath: 'Sim_tf.py' is not served by this site",
        ),
    ],
)
def test_a_transform_from_outside_is_taken_and_said(
    api: Api, task_params: Params, changes: dict[str, Any], said: str
) -> None:
    answer = post(api(), task_params(**changes))
    assert answer.status_code == 201
    (warning,) = answer.json()["warnings"]
    assert said in warning
    assert TaskStatusLog.objects.filter(
        task_id=answer.json()["id"], reason=f"warned when it was submitted: {warning}"
    ).exists()


def test_a_program_among_the_files_of_an_input_is_no_transform_of_the_site(
    api: Api, task_params: Params, grid: None
) -> None:
    program = {
        "type": "template",
        "param_type": "input",
        "dataset": "user.ada.code",
        "value": "${IN}",
        "files": ["work.sh"],
    }
    CatalogueDataset.objects.create(name="user.ada.code", scope="user.ada")
    answer = post(api(), task_params(noInput=False, transPath="work.sh", jobParameters=[program]))
    assert answer.status_code == 201


def test_many_patterns_are_refused_before_they_are_tried(api: Api, task_params: Params, grid: None) -> None:
    answer = post(api(), task_params(excludedSite=["C*"] * 201))
    assert faults(answer) == {"excludedSite": "At most 200 patterns are allowed."}


def test_of_many_unknown_names_the_first_are_told_and_the_rest_counted(
    api: Api, task_params: Params, grid: None
) -> None:
    answer = post(api(), task_params(excludedSite=[f"X{n}" for n in range(10_000)]))
    told = [e["message"] for e in answer.json()["errors"]]
    assert len(told) == 11 and told[-1] == "9990 more names match no queue."


def test_panda_s_clients_read_the_refusal(api: Api, task_params: Params, grid: None) -> None:
    body = {"task_parameters": json.dumps(task_params(includedSite=["CERN_PROF"]))}
    said = api().post("/api/v1/task/submit", body, content_type="application/json").json()
    assert said["success"] is False and said["data"] == 4
    assert said["message"] == "includedSite: There is no queue 'CERN_PROF'. Did you mean CERN_PROD?"


def test_the_command_line_says_it_too(
    make_user: Callable[..., Any], task_params: Params, grid: None, tmp_path: Path
) -> None:
    make_user("ada")
    file = tmp_path / "task.json"
    file.write_text(json.dumps(task_params(site="CERN_PROF")))
    with pytest.raises(CommandError, match=r"site: There is no queue 'CERN_PROF'. Did you mean CERN_PROD\?"):
        call_command("submit", str(file), user="ada")
    file.write_text(json.dumps(task_params(transPath="https://example.org/my.sh")))
    call_command("submit", str(file), user="ada")
    assert Task.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"command": "incexec", "changes": {"site": "CERN_PROF"}}, "changes.site"),
        ({"command": "incexec", "changes": {"includedSite": "BNL_PROF"}}, "changes.includedSite"),
        ({"command": "incexec", "changes": {"cloud": "XX"}}, "changes.cloud"),
        ({"command": "reassign", "site": "CERN_PROF"}, "site"),
        ({"command": "reassign", "site": "AUTO"}, "site"),
        ({"command": "reassign", "nucleus": "BNX"}, "nucleus"),
        ({"command": "reassign", "cloud": "XX"}, "cloud"),
    ],
)
def test_commands_name_what_is_there(
    api: Api, make_task: Callable[..., Task], grid: None, body: dict[str, Any], field: str
) -> None:
    task = make_task(status="running" if body["command"] == "reassign" else "finished", prod_source_label="user")
    TaskParams.objects.create(task_id=task.id, params={})
    answer = post(api("production"), body, f"{TASKS}{task.id}/commands/")
    assert answer.status_code == 422 and list(faults(answer)) == [field]
    bulk = post(
        api("production"), {**body, "ids": [task.id], "preview": False, "reason": "x"}, f"{TASKS}bulk-commands/"
    )
    assert bulk.status_code == 422 and list(faults(bulk)) == [field]
    assert not Command.objects.exists()


def test_a_retry_with_new_parameters_names_what_is_there(api: Api, make_task: Callable[..., Task], grid: None) -> None:
    task = make_task(status="finished", prod_source_label="user")
    client = api()

    def retry(**new: Any) -> dict[str, Any]:
        body = {"task_id": task.id, "new_parameters": new}
        found: dict[str, Any] = client.post("/api/v1/task/retry", body, content_type="application/json").json()
        return found

    said = retry(excludedSite="CERN_PROF,BNL_PROD")
    assert said["success"] is False and "Did you mean CERN_PROD?" in said["message"]
    assert retry(excludedSite="CERN_TEST,BNL_PROD", site=None)["data"] == 3


@pytest.mark.parametrize(("act", "field"), [("reassign", "site"), ("avoid_site", "site")])
def test_forms_of_acts_name_what_is_there(
    make_user: Callable[..., Any], make_task: Callable[..., Task], grid: None, act: str, field: str
) -> None:
    task = make_task(status="running")
    client = Client()
    client.force_login(make_user("boss", "administrator"))
    answer = client.post(f"/tasks/{task.id}/do/{act}/", {"reason": "why not", field: "CERN_PROF"})
    assert answer.status_code == 409 and b"Did you mean CERN_PROD?" in answer.content
    assert not Command.objects.exists()


def test_a_task_in_another_name_needs_the_right_and_a_user_of_that_name(
    api: Api, task_params: Params, make_user: Callable[..., Any]
) -> None:
    make_user("eve")
    answer = post(api(), task_params(userName="eve"))
    assert faults(answer) == {"userName": "You are ada; you need the production right to submit for 'eve'."}
    assert post(api(), task_params(userName="ada")).json()["user"] == "ada"
    assert post(api("production"), task_params(userName="eve")).json()["user"] == "eve"
    for name, says in (
        ("evee", "There is no user 'evee'. Did you mean eve?"),
        ("zzzzzz", "There is no user 'zzzzzz'."),
    ):
        assert faults(post(api("production"), task_params(userName=name))) == {"userName": says}


def test_faults_of_values_and_of_names_are_told_together(api: Api, task_params: Params, grid: None) -> None:
    found = faults(post(api(), task_params(nEventsPerJob=0, site="CERN_PROT")))
    assert set(found) == {"nEventsPerJob", "site"} and "Did you mean CERN_PROD?" in found["site"]


OUTPUT = {"type": "template", "param_type": "output", "value": "o.${SN}", "dataset": "user.ada.o"}
OF_ALL_KINDS: dict[str, Any] = {
    "nEventsPerJob": "user.ada.measurements",
    "ramCount": "much",
    "site": "CERN_PROT",
    "cloud": "CERM",
    "gshare": "Analysys",
    "workQueueName": "analisis",
    "destination": "BNL_DISC",
    "transPath": "run_comand",
    "workingGroup": "phys-susy",
    "taskPriotity": 3,
}


def test_faults_of_values_rights_names_and_data_are_told_in_one_answer(
    api: Api, task_params: Params, grid: None, catalogue: None
) -> None:
    CatalogueDataset.objects.create(name="user.ada.o", scope="x", owner="bob")
    inputs = [
        reading(name)["jobParameters"][0] for name in ("user.ada.measurements", "user.ada.mesurements", "user.*.hits")
    ]
    given = {**OF_ALL_KINDS, "jobParameters": [*inputs, OUTPUT], "noInput": False, "skipFilesUsedBy": "77"}
    said = faults(post(api(), task_params(**given)))
    items = {f"jobParameters[{n}].dataset" for n in (1, 2, 3)}
    assert set(said) == {*OF_ALL_KINDS, "skipFilesUsedBy"} | items, said
    assert said["jobParameters[1].dataset"].startswith("There is no dataset 'user.ada.mesurements'. Did you mean")
    assert "belongs to bob" in said["jobParameters[3].dataset"] and "Did you mean BNL_DISK?" in said["destination"]


def test_faults_of_names_and_of_data_are_told_together(
    api: Api, task_params: Params, grid: None, catalogue: None
) -> None:
    for site, field in (("CERN_PROT", "site"), ("CERN_PROD", None)):
        wish = reading("user.ada.nothing", site=site)
        wish["jobParameters"].append({**OUTPUT, "dataset": "user.bob.o"} if field is None else OUTPUT)
        fields = {"jobParameters[0].dataset", field or "jobParameters[1].dataset"}
        assert set(faults(post(api(), task_params(**wish)))) == fields
    parent = faults(
        post(api(), task_params(**reading("user.ada.new", parentTaskName="user.ada.frist", site="CERN_PROT")))
    )
    assert set(parent) == {"parentTaskName", "site"}, "which inputs an unknown parent makes is not known"
    closed = CatalogueDataset.objects.get(name="user.ada.measurements")
    CatalogueDataset.objects.filter(pk=closed.pk).update(open=False)
    CatalogueFile.objects.create(
        dataset=closed, lfn="m1", scope="x", guid="g", size=1, adler32="0" * 8, endpoint="E", url="file:///m1"
    )
    wish = reading(closed.name, parent_tid=99, container_name="docker://alpine", multiStepExec={"containerOptions": {}})
    wish["jobParameters"][0] |= {"include": "zz", "exclude": "m", "offset": 7}
    own = {f"jobParameters[0].{key}" for key in ("include", "exclude", "offset")}
    assert set(faults(post(api(), task_params(**wish)))) == {"parent_tid", "multiStepExec", *own}
    wish["ramCount"] = "much"
    assert set(faults(post(api(), task_params(**wish)))) == {"ramCount", "parent_tid", "multiStepExec", *own}


def test_an_item_is_told_each_of_its_placeholders_that_nothing_fills(api: Api, task_params: Params) -> None:
    wish = task_params(jobParameters=[{"type": "constant", "value": "${SN/9999} ${OUTPUT1} ${IN} ${SN:99} ${HOME}"}])
    said = [e["message"] for e in post(api(), wish).json()["errors"]]
    assert [message.partition("}")[0].rpartition("${")[2] for message in said] == [
        "SN/9999",
        "SN:99",
        "OUTPUT1",
        "IN",
    ], said


def test_a_refusal_of_a_dictionary_that_cannot_be_read_asks_for_nothing(
    api: Api, task_params: Params, django_assert_max_num_queries: Any
) -> None:
    client = api()
    for body in ([], {"taskName": "a\x00b", "site": "NOWHERE"}, {f"k{n}": "site" for n in range(1001)}):
        with django_assert_max_num_queries(4):
            assert post(client, body).status_code in (400, 422)


def test_a_pattern_that_takes_no_file_is_refused_where_no_more_files_come(
    api: Api, task_params: Params, catalogue: None
) -> None:
    CatalogueDataset.objects.update(open=False)
    for name, lfns in (("user.ada.measurements", ["m1.txt", "m2.txt", "m3.txt"]), ("user.bob.hits", ["h.root"])):
        dataset = CatalogueDataset.objects.get(name=name)
        CatalogueFile.objects.bulk_create(
            CatalogueFile(
                dataset=dataset,
                lfn=lfn,
                scope="x",
                guid=lfn,
                size=1,
                adler32="0" * 8,
                endpoint="E",
                url=f"file:///{lfn}",
            )
            for lfn in lfns
        )

    def refused(*datasets: str, more: dict[str, Any] | None = None, **patterns: object) -> dict[str, str]:
        wish = reading(*datasets, **(more or {}))
        wish["jobParameters"][0] |= patterns
        answer = post(api(), task_params(taskName=f"user.ada.t{Task.objects.count()}", **wish))
        assert answer.status_code in (201, 422), answer.content
        return faults(answer) if answer.status_code == 422 else {}

    wait = " To let the task wait for its input, set waitInput."
    three = "of the 3 files of user.ada.measurements, such as m1.txt and m2.txt."
    assert refused("user.ada.measurements", include="root$,^x") == {
        "jobParameters[0].include": f"'root$,^x' takes none {three}{wait}"
    }
    assert refused("user.ada.measurements", exclude="txt") == {
        "jobParameters[0].exclude": f"'txt' leaves out all {three}{wait}"
    }
    both = refused("user.ada.measurements", include="[12]", exclude="m")
    assert both == {"jobParameters[0].exclude": f"'m' leaves out all that include '[12]' takes {three}{wait}"}
    only = refused("user.bob.hits", include="txt")["jobParameters[0].include"]
    assert only == f"'txt' does not take the only file of user.bob.hits, h.root.{wait}"
    many = refused("user.ada.measurements", "user.bob.hits", include="zip")["jobParameters[0].include"]
    assert many.startswith("'zip' takes none of the 4 files of the 2 datasets of the item, such as h.root and m1.txt.")
    listed = refused("user.ada.measurements", files=["m1.txt", "m2.txt"], exclude="m")
    assert listed == {
        "jobParameters[0].exclude": "'m' leaves out all of the 2 files of its list, such as m1.txt and m2.txt."
    }
    assert refused("user.ada.measurements", files=["m1.txt", "m2.txt"], exclude="2") == {}
    for box, said in (
        ("user.ada.nowhere:x", "There is no dataset"),
        ("user.ada.measurements:x", "'x', the sandbox, is"),
    ):
        assert refused("user.ada.measurements", more={"tarBallViaDDM": box})["tarBallViaDDM"].startswith(said)
    assert refused("user.ada.measurements", more={"tarBallViaDDM": "user.ada.measurements:m1.txt"}) == {}
    for fine in ({"include": "3"}, {"exclude": "[12]"}, {"include": "zip", "more": {"waitInput": True}}, {"offset": 2}):
        assert refused("user.ada.measurements", **fine) == {}
    beyond = refused("user.ada.measurements", offset=3)
    assert beyond == {
        "jobParameters[0].offset": f"3 leaves out every file: user.ada.measurements has only 3 files.{wait}"
    }
    assert "only 2 files that the patterns take" in str(refused("user.ada.measurements", include="[12]", offset=2))
    assert "no dataset of it has more than 3" in str(refused("user.ada.measurements", "user.bob.hits", offset=3))
    assert refused("user.ada.measurements", "user.bob.hits", offset=2) == {}
    nothing = refused("user.ada.measurements", include="zip", exclude="m,q", offset=9)
    assert [sentence.partition(" ")[0] for sentence in nothing.values()] == ["'zip'", "'m'", "9"], nothing
    assert refused("user.ada.measurements", "user.bob.hits", include="root") == {}
    CatalogueDataset.objects.filter(name="user.bob.hits").update(open=True)
    assert refused("user.bob.hits", include="zip") == {}, "more files may come"
    assert refused("user.ada.box/", include="zip") == {}, "an empty input is what the feeder says of it"


@pytest.mark.parametrize(
    ("places", "which"),
    [
        ({"excludedSite": ["CERN_*", "BNL_PROD"]}, "of this site"),
        ({"excludedSite": "*", "includedSite": "AUTO"}, "of this site"),
        ({"excludedSite": "CERN_PROD,CERN_TEST", "includedSite": "CERN_*"}, "of includedSite"),
        ({"excludedSite": "CERN_*"}, ""),
        ({"excludedSite": "CERN_PROD", "includedSite": "CERN_*"}, ""),
    ],
    ids=str,
)
def test_lists_that_leave_no_queue_are_told_of(
    api: Api, task_params: Params, grid: None, places: dict[str, Any], which: str
) -> None:
    answer = post(api(), task_params(**places))
    said = f"excludedSite excludes every queue {which}: the task waits until another queue exists."
    assert (answer.status_code, answer.json()["warnings"]) == (201, [said] if which else [])


def test_an_input_may_be_written_with_its_scope(api: Api, task_params: Params, catalogue: None) -> None:
    CatalogueDataset.objects.create(name="user.ada:user.ada.odd", scope="x", owner="ada")
    wish = task_params(
        **reading("user.ada:user.ada.measurements", "mc23_13p6TeV:mc23_13p6TeV.1.hits", "user.ada:user.ada.odd")
    )
    answer = post(api(), wish | {"dsForIN": ["user.bob:user.bob.hits", "user.ada:user.ada.box"]})
    assert answer.status_code == 201, answer.json()
    kept = TaskParams.objects.get(pk=answer.json()["id"]).params
    assert kept["jobParameters"][0]["dataset"] == "user.ada.measurements,mc23_13p6TeV.1.hits,user.ada:user.ada.odd"
    assert kept["dsForIN"] == "user.bob.hits,user.ada.box"
    other = post(api(), task_params(**reading("user.ada:user.bob.hits", "user.ada:user.ada.none")))
    assert list(faults(other)) == ["jobParameters[0].dataset"]


def test_a_submission_with_many_patterns_and_files_is_not_looked_at_for_minutes(
    api: Api, task_params: Params, catalogue: None
) -> None:
    CatalogueDataset.objects.update(open=False)
    dataset = CatalogueDataset.objects.get(name="user.ada.measurements")
    CatalogueFile.objects.bulk_create(
        CatalogueFile(
            dataset=dataset, lfn=f"m{n}", scope="x", guid=str(n), size=1, adler32="0" * 8, endpoint="E", url="file:///m"
        )
        for n in range(1000)
    )

    def refused(*items: dict[str, Any]) -> list[str]:
        wish = reading("user.ada.measurements")
        (item,) = wish["jobParameters"]
        wish["jobParameters"] = [item | {"value": f"--in=${{IN{n}/L}}"} | more for n, more in enumerate(items)]
        return [name for name in faults(post(api(), task_params(**wish))) if name.endswith(".include")]

    assert len(refused(*[{"include": "zz"}] * 30)) == known_names.MOST_TESTS // 2000
    assert refused({"include": ",".join(["zz"] * 100)}, {"include": "zz"}) == ["jobParameters[1].include"]


@pytest.mark.parametrize("item_of_each", [False, True], ids=["one item", "many items"])
def test_misspelt_files_of_many_datasets_cost_a_submission_little(
    api: Api, task_params: Params, item_of_each: bool
) -> None:
    box = CatalogueDataset.objects.create(name="user.ada.box/", scope="x", owner="ada", open=False)
    names = [f"user.ada.run{number:05d}.measurements" for number in range(200)]
    box.members.set(
        CatalogueDataset.objects.bulk_create(CatalogueDataset(name=n, scope="x", open=False) for n in names)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO catalogue_files (dataset_id, lfn, scope, guid, size, adler32, endpoint, url)
               SELECT d.id, d.name || '.' || lpad(n::text, 5, '0') || '.root_of_a_run_with_a_long_name', 'x', '', 1, '0', '', ''
                 FROM catalogue_datasets d, generate_series(1, 50) n WHERE d.name LIKE '%.measurements'"""
        )
    unknown = [f"{name}.00025.root_of_a_run_with_a_wrong_name" for name in names[100:110]]
    wish = task_params(**reading("user.ada.box/"))
    wish["jobParameters"][0]["files"] = unknown
    if item_of_each:
        (item,) = wish["jobParameters"]
        wish["jobParameters"] = [item | {"dataset": name, "files": unknown} for name in names]
    client = api()
    began = time.process_time()
    answer = post(client, wish)
    took = time.process_time() - began
    assert answer.status_code == 422 and len(answer.json()["errors"]) >= 10
    assert took < 4, "a web worker compared names for so many seconds"


def test_thousands_of_misspelt_files_are_refused_in_time(api: Api, task_params: Params, catalogue: None) -> None:
    CatalogueDataset.objects.update(open=False)
    wish = task_params(**reading(CatalogueDataset.objects.order_by("name").values_list("name", flat=True)[0]))
    wish["jobParameters"][0]["files"] = [f"probe.{number}.root" for number in range(10_000)]
    client = api()
    began = time.process_time()
    answer = post(client, wish)
    took = time.process_time() - began
    assert answer.status_code == 422 and "'probe.0.root' is not in" in answer.json()["errors"][0]["message"]
    assert took < 4


def test_misspelt_storage_costs_a_submission_little(api: Api, task_params: Params) -> None:
    StorageEndpoint.objects.bulk_create(
        StorageEndpoint(name=f"SITE{number:04d}_{'DISK' * 10}", site_name="X") for number in range(300)
    )
    wish = task_params()
    output = {"type": "template", "param_type": "output", "value": "o.${SN}", "dataset": "user.ada.out"}
    wish["jobParameters"] = [
        output | {"value": f"{n}.${{SN}}", "destination": f"SIT{n:04d}_{'DISK' * 10}"} for n in range(240)
    ]
    client = api()
    began = time.process_time()
    answer = post(client, wish)
    took = time.process_time() - began
    said = [e["message"] for e in answer.json()["errors"]]
    assert answer.status_code == 422 and "Did you mean" in said[0] and len(said) >= 240
    assert took < 4, "a web worker compared names for so many seconds"


def test_panda_s_clients_read_which_option_takes_no_file(api: Api, task_params: Params, catalogue: None) -> None:
    CatalogueDataset.objects.update(open=False)
    dataset = CatalogueDataset.objects.get(name="user.ada.measurements")
    CatalogueFile.objects.create(
        dataset=dataset, lfn="m1", scope="x", guid="g", size=1, adler32="0" * 8, endpoint="E", url="file:///m1"
    )
    wish = task_params(**reading("user.ada.measurements"), processingType="panda-client-1.6.0-jedi-run")
    wish["jobParameters"][0] |= {"value": '-i "${IN/T}"', "include": "root"}
    answer = post(api(), {"task_parameters": wish}, "/api/v1/task/submit").json()
    assert answer["success"] is False and "--match: 'root' does not take the only file" in answer["message"]
    # As prun writes --antiMatch '*m*' and --nSkipFiles 1.
    added = r"\.log\.tgz(\.\d+)*$"
    wish["jobParameters"][0] |= {"include": r".*m\..*", "exclude": f"{added},.*m.*", "offset": 1}
    said = post(api(), {"task_parameters": wish}, "/api/v1/task/submit").json()["message"]
    for part in (
        "--match: '*m.*' does not take the only",
        "--antiMatch: '*m*' leaves out the only file",
        "--nSkipFiles: 1 leaves out every file",
    ):
        assert part in said
    CatalogueFile.objects.update(lfn="m1.log.tgz")
    wish["jobParameters"][0] |= {"include": None, "exclude": added, "offset": None}
    said = post(api(), {"task_parameters": wish}, "/api/v1/task/submit").json()["message"]
    assert rf"--antiMatch: '{added}', which the client adds, leaves out the only file" in said


def test_a_task_that_is_to_be_deleted_is_killed_and_bodies_are_json(api: Api, make_task: Callable[..., Any]) -> None:
    client, task = api(), make_task()
    assert client.delete(f"/api/v2/tasks/{task.id}/").json()["detail"] == (
        'Method "DELETE" not allowed. A task is ended by POST /api/v2/tasks/<id>/commands/ with {"command": "kill"}.'
    )
    said = client.post("/api/v2/tasks/", "a=b", "application/x-www-form-urlencoded").json()
    assert said["detail"].endswith("Send JSON, with the header Content-Type: application/json.")
    said = client.get("/api/v2/tasks/", {"created_after": "yesterday"}).json()
    assert said["errors"][0]["message"] == "Enter a time as 2026-01-31T12:00:00Z, or a day as 2026-01-31."


def test_a_source_label_is_one_that_the_site_tells_apart(api: Api, task_params: Params, grid: None) -> None:
    client = api("production")
    answer = post(client, task_params(prodSourceLabel="manged"))
    assert answer.status_code == 422 and "Did you mean managed?" in faults(answer)["prodSourceLabel"]
    WorkQueue.objects.create(name="own", type="beamtest", vo="lab", share=1, order=9, status="active")
    for label in ("managed", "beamtest", "ptest"):
        assert post(client, task_params(prodSourceLabel=label)).status_code == 201


@pytest.fixture
def ended(make_task: Callable[..., Task], task_params: Params, catalogue: None, grid: None) -> Callable[..., Task]:
    """A task of ada's that has ended, and reads one dataset."""

    def make(**more: Any) -> Task:
        params = task_params(**reading("user.ada.measurements"), **more)
        task = make_task(user="ada", name=params["taskName"], status="finished", prod_source_label="user", vo="local")
        TaskParams.objects.create(task_id=task.id, params=params)
        return task

    return make


def test_inputs_that_a_command_adds_are_checked_at_every_door(
    api: Api, ended: Callable[..., Task], client: Client, make_user: Callable[..., Any]
) -> None:
    task, wrong = ended(), {"dsForIN": "user.ada.mesurements"}
    says = "There is no dataset 'user.ada.mesurements'. Did you mean user.ada.measurements?"
    body = {"command": "incexec", "changes": wrong}
    answer = post(api(), body, f"{TASKS}{task.id}/commands/")
    assert answer.status_code == 422 and faults(answer)["changes.dsForIN"].startswith(says)
    many = {**body, "ids": [task.id], "preview": False, "reason": "x"}
    answer = post(api(), many, f"{TASKS}bulk-commands/")
    assert answer.status_code == 422 and faults(answer)["changes.dsForIN"].startswith(says)
    said = post(api(), {"task_id": task.id, "new_parameters": wrong}, "/api/v1/task/retry").json()
    assert said["success"] is False and says in said["message"]
    again = post(api(), TaskParams.objects.get().params | wrong)
    assert again.status_code == 422 and faults(again)["dsForIN"].startswith(says)
    client.force_login(make_user("rita", "production"))
    form = {"reason": "x", "changes": json.dumps(wrong)}
    shown = client.post(f"/tasks/{task.id}/do/incexec/", form)
    assert shown.status_code == 409 and "Did you mean user.ada.measurements?" in shown.content.decode()
    assert not Command.objects.exists()


def test_inputs_that_may_be_added(api: Api, ended: Callable[..., Task], make_task: Callable[..., Task]) -> None:
    def add(task: Task, names: str) -> Any:
        return post(api(), {"command": "incexec", "changes": {"dsForIN": names}}, f"{TASKS}{task.id}/commands/")

    logs = make_task(user="bob", status="done")
    Dataset.objects.create(task=logs, name="user.bob.logs", type="log", status="ready")
    CatalogueDataset.objects.create(name="user.bob.logs", scope="user.bob", owner="bob")
    refused = add(ended(taskName="user.ada.a"), "user.bob.logs")
    assert refused.status_code == 422 and "holds the logs of task" in faults(refused)["changes.dsForIN"]
    for params, names in (
        ({}, "user.bob.hits"),
        ({"waitInput": True}, "user.ada.later"),
        ({"dsForIN": "user.ada.gone"}, "user.ada.gone"),
    ):
        answer = add(ended(taskName=f"user.ada.{len(names)}", **params), names)
        assert answer.status_code == 202, answer.json()
