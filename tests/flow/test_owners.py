"""Two users: whatever one of them submits, the datasets of the other stay as they are."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from jedisite.vocabulary.roles import Caller, Role
from tasks_app.agents.watchdogs import expired_datasets
from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import SITE, ForeignDatasetError, Maker, NewFile
from tasks_app.dispatch.reports import update_job
from tasks_app.lifecycle import task_moves
from tasks_app.models import CatalogueDataset, Dataset, File, Task
from tasks_app.outcomes import output_check
from tasks_app.params.faults import ParamErrors
from tasks_app.submission import submitting
from tests.flow.driving import parameters, reads, settle, status, task, template
from tests.flow.pilot import Pilot, always, drive, report, stored

pytestmark = pytest.mark.usefixtures("books")
HITS, LOG = "user.ann.hits", "user.ann.log"
Row = tuple[Any, ...]


def dictionary(user: str, output: str, log: str, **more: Any) -> dict[str, Any]:
    return {
        "taskName": f"user.{user}.t",
        "vo": "lab",
        "prodSourceLabel": "user",
        "processingType": "test",
        "noInput": True,
        "nEvents": 2,
        "nEventsPerJob": 1,
        "transPath": "run_command",
        "ramCount": 1000,
        "ramUnit": "MB",
        "maxAttempt": 1,
        "log": template("log", f"{user}.${{SN}}.log.tgz", log),
        "jobParameters": [template("output", f"{user}.${{SN}}.root", output)],
        **more,
    }


def post(server: LiveServer, address: str, token: str, body: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}{address}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as exc:
        return exc.code, json.load(exc)


class Storage:
    """A pilot that writes real files into the site's storage."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def work(self) -> None:
        pilot = Pilot()
        settle()
        for job in pilot.fetch(100):
            pilot.start(job)
            outputs = stored(job)
            for lfn, said in outputs.items():
                path = storage_path(self.root, "user.ann", lfn)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(lfn)
                said["surl"] = f"file://localhost{path}"
            update_job(report(job, "finished", outputs=outputs))
        drive(Pilot())

    def files(self) -> dict[str, str]:
        return {str(path): path.read_text() for path in sorted(self.root.rglob("*")) if path.is_file()}


def rows_of(name: str = "user.ann") -> list[Row]:
    """Everything that the catalogue has of datasets whose names begin so."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT d.*, f.* FROM catalogue_datasets d LEFT JOIN catalogue_files f ON f.dataset_id = d.id
                WHERE starts_with(d.name, %s) ORDER BY d.id, f.id""",
            [name],
        )
        return cursor.fetchall()


@pytest.fixture
def storage(settings: Any, tmp_path: Path) -> Storage:
    settings.JEDI_STORAGE = tmp_path / "storage"
    return Storage(settings.JEDI_STORAGE)


@pytest.fixture
def anns(storage: Storage) -> Task:
    """A task of ann that has ended well: a closed dataset with two files, a log, and a container."""
    made = submit_for("ann", dictionary("ann", HITS, LOG))
    row = task(made)
    storage.work()
    assert status(made) == "done"
    data_management().add_to_container("user.ann.all/", [HITS], by=Maker("ann", made))
    data_management().close([HITS], by=Maker("ann", made))
    assert len(storage.files()) == 4
    return row


def submit_for(user: str, params: dict[str, Any]) -> int:
    """Past the door, as if its checks had a hole."""
    return task_moves.submit(
        params,
        name=params["taskName"],
        user=user,
        vo="lab",
        label="user",
        task_type="anal",
        priority=500,
        parent_id=None,
    )


ATTACKS: dict[str, dict[str, Any]] = {
    "output": {"jobParameters": [template("output", "bob.${SN}.root", HITS)]},
    "the same file names": {"jobParameters": [template("output", "ann.${SN}.root", HITS)]},
    "transient output": {"jobParameters": [template("output", "bob.${SN}.root", HITS, transient=True)]},
    "scope before a colon": {"jobParameters": [template("output", "bob.${SN}.root", f"user.ann:{HITS}")]},
    "another scope before a colon": {"jobParameters": [template("output", "bob.${SN}.root", "user.ann:user.bob.x")]},
    "container in place of the dataset": {"jobParameters": [template("output", "bob.${SN}.root", f"{HITS}/")]},
    "container": {"jobParameters": [template("output", "bob.${SN}.root", "user.bob.x", container="user.ann.all/")]},
    "container without its slash": {"log": template("log", "l.${SN}.tgz", "user.bob.log", container="user.ann.all")},
    "log": {"log": template("log", "bob.${SN}.log.tgz", LOG)},
    "merge log": {"log_merge": template("log", "bob.${SN}.log.tgz", LOG, mergeOnly=True)},
    "merged output": {
        "mergeOutput": True,
        "mergeSpec": {"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"},
        "jobParameters": [template("output", "bob.${SN}.root", HITS)],
    },
    "unmerged files of others": {"jobParameters": [template("output", "bob.${SN}.root", f"panda.um.{HITS}")]},
    "library": {"jobParameters": [template("output", "bob.${SN}.root", "panda.1122123456.000001.lib._000001")]},
    "log of a preprocessing step": {
        "preproSpec": {"jobParameters": "-p find.sh"},
        "log": template("log", "bob.${SN}.log.tgz", LOG),
    },
    "a name that a step finds": {
        "preproSpec": {"jobParameters": "-p find.sh"},
        "jobParameters": [template("output", "bob.${SN}.root", "%%OUT%%")],
    },
    "in capitals": {"jobParameters": [template("output", "bob.${SN}.root", "user.ANN.hits")]},
    "almost bob": {"jobParameters": [template("output", "bob.${SN}.root", "user.bobby.hits")]},
    "the account bob.c": {"jobParameters": [template("output", "bob.${SN}.root", "user.bob.c.hits")]},
    "production": {"jobParameters": [template("output", "bob.${SN}.root", "mc23_13p6TeV.1.EVNT")]},
    "group": {"jobParameters": [template("output", "bob.${SN}.root", "group.phys-higgs.hits")]},
    "working group": {"workingGroup": "phys-higgs"},
    "official": {"official": True},
}


def test_no_door_takes_a_task_that_makes_what_is_not_its_submitters(
    anns: Task, storage: Storage, live_server: LiveServer, make_token: Callable[..., str], tmp_path: Path
) -> None:
    bob, before, files = make_token(name="bob"), rows_of(), storage.files()
    make_token(name="bob.c")
    tasks = Task.objects.count()
    for what, changes in ATTACKS.items():
        body = {**dictionary("bob", "user.bob.hits", "user.bob.log"), **changes}
        code, said = post(live_server, "/api/v2/tasks/", bob, body)
        assert code == 422, f"{what}: {said}"
        assert all(e["field"].split(".")[0].split("[")[0] in changes for e in said["errors"]), f"{what}: {said}"
        code, said = post(live_server, "/api/v1/task/submit", bob, {"task_parameters": body})
        assert (code, said["success"], said["data"]) == (200, False, 4), f"{what}: {said}"
        file = tmp_path / "task.json"
        file.write_text(json.dumps(body))
        with pytest.raises(CommandError):
            call_command("submit", str(file), user="bob", stdout=io.StringIO())
        drive(Pilot())
    assert Task.objects.count() == tasks
    assert (rows_of(), storage.files()) == (before, files)


def test_a_task_of_ones_own_cannot_be_turned_to_the_data_of_others(
    anns: Task, storage: Storage, live_server: LiveServer, make_token: Callable[..., str]
) -> None:
    bob, before, files = make_token(name="bob"), rows_of(), storage.files()
    code, said = post(
        live_server, "/api/v2/tasks/", bob, dictionary("bob", "user.bob.hits", "user.bob.log", uniqueTaskName=True)
    )
    assert code == 201
    mine = said["id"]
    drive(Pilot())
    assert status(mine) == "done"
    for changes in ({"log": template("log", "b.${SN}.tgz", LOG)}, {"jobParameters": []}, {"dsForOUTPUT0": HITS}):
        order = {"command": "incexec", "changes": changes}
        code, said = post(live_server, f"/api/v2/tasks/{mine}/commands/", bob, order)
        assert code == 422 or "dsForOUTPUT0" in changes, said
        drive(Pilot())
    for order in ("retry", "kill", "incexec", "finish", "reload_input"):
        code, said = post(live_server, f"/api/v2/tasks/{anns.id}/commands/", bob, {"command": order})
        assert code in (403, 404, 422), f"{order}: {code} {said}"
    code, said = post(live_server, f"/api/v2/tasks/{anns.id}/lost-files/", bob, {"files": ["ann.000001.root"]})
    assert code in (403, 404), said
    drive(Pilot())
    assert (rows_of(), storage.files()) == (before, files)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"jobParameters": [template("output", "bob.${SN}.root", HITS)]}, HITS),
        ({"jobParameters": [template("output", "ann.${SN}.root", HITS, transient=True)]}, HITS),
        ({"log": template("log", "bob.${SN}.log.tgz", LOG)}, LOG),
        ({"jobParameters": [template("output", "b.${SN}", "user.bob.x", container="user.ann.all/")]}, "user.ann.all/"),
    ],
)
def test_behind_the_door_the_catalogue_refuses_as_well(
    anns: Task, storage: Storage, more: dict[str, Any], what: str
) -> None:
    before, files = rows_of(), storage.files()
    made = submit_for("bob", {**dictionary("bob", "user.bob.x", "user.bob.log"), **more})
    drive(Pilot(always("failed")))
    assert status(made) == "broken"
    assert f"the dataset {what} exists and belongs to ann (task {anns.id} made it)" in (task(made).error_dialog or "")
    assert not Dataset.objects.filter(task_id=made).exists()
    assert (rows_of(), storage.files()) == (before, files)


def test_the_catalogue_itself_changes_nothing_of_others(anns: Task, storage: Storage) -> None:
    before, files = rows_of(), storage.files()
    ddm, bob, now = data_management(), Maker("bob", 7), timezone.now()
    with pytest.raises(ForeignDatasetError, match=rf"{HITS} exists and belongs to ann \(task {anns.id} made it\)"):
        ddm.create(["user.bob.new", HITS], scope="user.bob", by=bob)
    with pytest.raises(ForeignDatasetError, match=r"user\.ann\.all/"):
        ddm.add_to_container("user.ann.all", [], by=bob)
    ddm.add([NewFile(HITS, "poison", "user.bob", "g", 1, "1", None, "SE", "file:///x", "bob")])
    ddm.close([HITS, "user.ann.all/"], by=bob)
    ddm.keep_until([HITS, LOG, "user.ann.all/"], now, by=bob)
    assert ddm.remove(HITS, ["ann.000001.root"], by=bob) == 0
    assert ddm.delete([HITS, LOG, "user.ann.all/"], by=bob) == 0
    # Nor does another task of ann end what it has not made.
    ann = Maker("ann", 7)
    assert ddm.delete([HITS, LOG], by=ann) == 0
    ddm.keep_until([HITS, LOG], now, by=ann)
    assert (rows_of(), storage.files()) == (before, files)
    assert not CatalogueDataset.objects.filter(name="user.bob.new").exists()
    assert expired_datasets.run(now=now + timedelta(days=999)).items == 0
    assert ddm.delete([HITS], by=Maker("ann", anns.id)) == 1


def test_logs_of_others_are_no_input_and_their_outputs_are(anns: Task, make_user: Callable[..., Any]) -> None:
    for name, role in (("bob", "user"), ("zoe", "shifter")):
        make_user(name, role)
    data_management().add_to_container("user.ann.logs/", [LOG], by=Maker("ann", anns.id))
    bob, ann = Caller("bob", frozenset({Role.USER})), Caller("ann", frozenset({Role.USER}))

    def try_out(caller: Caller, dataset: str, **more: Any) -> None:
        mine = f"user.{caller.name}.{len(dataset)}"
        inputs = [reads(dataset), template("output", "x.${SN}.root", f"{mine}.x")]
        params = dictionary(
            caller.name, "", f"{mine}.l", noInput=False, nEvents=None, nEventsPerJob=None, taskName=mine
        )
        submitting.submit(submitting.check(params | {"jobParameters": inputs} | more, caller), by=caller.name)

    for name in (LOG, "user.ann.logs/", "user.ann.logs", f"{HITS},{LOG}"):
        with pytest.raises(ParamErrors, match=rf"holds the logs of task {anns.id}, which belongs to ann"):
            try_out(bob, name)
    with pytest.raises(ParamErrors, match=r"dsForIN.*holds the logs"):
        try_out(bob, HITS, dsForIN=LOG)
    try_out(bob, HITS)
    try_out(ann, LOG)
    try_out(Caller("zoe", frozenset({Role.USER, Role.SHIFTER})), LOG)
    # Whatever became of the names after the door: nothing of it is fed.
    inputs = [reads(LOG), template("output", "y.${SN}.root", "user.bob.y")]
    late = dictionary("bob", "", "user.bob.ly", noInput=False, nEvents=None, nEventsPerJob=None, jobParameters=inputs)
    late["log"] = template("log", "late.${SN}.log.tgz", "user.bob.ly")
    made = submit_for("bob", late)
    settle()
    assert status(made) == "broken" and "holds the logs of task" in (task(made).error_dialog or "")


def test_what_is_registered_belongs_to_the_site_or_to_the_user_who_is_named(tmp_path: Path) -> None:
    file, other = tmp_path / "one", tmp_path / "two"
    for path in (file, other):
        path.write_text(path.name)
    call_command("register_dataset", "user.ann.a", str(file), "--open", stdout=io.StringIO())
    User.objects.bulk_create(User(username=name) for name in ("ann", "bob"))
    with pytest.raises(CommandError, match=r"there is no user anm\. Did you mean ann\? .*nothing was registered"):
        call_command("register_dataset", "user.ann.b", str(file), owner="anm")
    call_command("register_dataset", "user.ann.b", str(file), "--open", owner="ann", stdout=io.StringIO())
    with pytest.raises(CommandError, match="belongs to ann"):
        call_command("register_dataset", "user.ann.b", str(other), "--open", owner="bob", stdout=io.StringIO())
    ann = Maker("ann", 7)
    with pytest.raises(ForeignDatasetError, match=r"user\.ann\.a exists and belongs to this site"):
        data_management().create(["user.ann.a"], scope="user.ann", by=ann)
    data_management().create(["user.ann.b"], scope="user.ann", by=ann)
    assert data_management().delete(["user.ann.a", "user.ann.b"], by=ann) == 0


def test_a_later_task_of_the_owner_adds_to_a_dataset_and_ends_nothing_of_it(anns: Task, storage: Storage) -> None:
    """prun with the name of an older --outDS, when all of its jobs fail."""
    before, files = rows_of(), storage.files()
    ends = timezone.now() + timedelta(days=1)
    made = submit_for("ann", dictionary("ann", HITS, LOG, taskName="user.ann.t2"))
    settle()
    assert data_management().describe(HITS).open
    Task.objects.filter(pk=made).update(vo="atlas")  # so that its end deletes what is empty
    drive(Pilot(always("failed")))
    assert status(made) == "failed"
    assert [row for row in rows_of(HITS)] == [row for row in before if row[1] == HITS]
    assert files.items() <= storage.files().items()
    CatalogueDataset.objects.filter(name=HITS).update(expires=ends)
    more = submit_for("ann", dictionary("ann", HITS, LOG, taskName="user.ann.t3"))
    settle()
    Task.objects.filter(pk=more).update(vo="atlas")
    drive(Pilot())
    info, row = data_management().describe(HITS), CatalogueDataset.objects.get(name=HITS)
    assert (status(more), info.files, info.open, info.made_by_task) == ("done", 4, False, anns.id)
    assert row.expires is not None and row.expires > ends + timedelta(days=12), "kept as long as the later task's"


def test_the_first_of_two_tasks_that_write_to_one_dataset_leaves_it_open_for_the_other() -> None:
    first = submit_for("ann", dictionary("ann", HITS, LOG))
    other = dictionary("ann", HITS, LOG, taskName="user.ann.t2")
    other["log"]["value"], other["jobParameters"][0]["value"] = "ann.b.${SN}.log.tgz", "ann.b.${SN}.root"
    second = submit_for("ann", other)
    settle()
    pilot = Pilot()
    for job in pilot.fetch(100):
        if job["taskID"] == first:
            pilot.start(job)
            pilot.end(job, "failed")
    Task.objects.filter(pk=first).update(vo="atlas")
    settle()
    assert (status(first), status(second)) == ("failed", "running")
    assert data_management().describe(HITS).open
    for job in pilot.ran:
        if job["taskID"] == second:
            pilot.start(job)
            pilot.end(job)
    drive(Pilot())
    info = data_management().describe(HITS)
    assert (status(second), info.files, info.open) == ("done", 2, False)


def test_a_task_runs_again_and_makes_its_lost_files_again(anns: Task) -> None:
    data_management().remove(HITS, ["ann.000001.root"], by=SITE)
    call_command("recover_lost_files", str(anns.id), "--files", "ann.000001.root", stdout=io.StringIO())
    drive(Pilot())
    assert (status(anns.id), data_management().describe(HITS).files) == ("done", 2)
    assert output_check.check(anns.id).is_clean


def test_a_merge_of_others_outputs_does_not_say_how_long_they_are_kept() -> None:
    wanted = dictionary("ann", HITS, LOG)
    wanted["jobParameters"][0]["transient"] = True
    parent = submit_for("ann", wanted)
    drive(Pilot())
    ends = CatalogueDataset.objects.get(name=HITS).expires
    assert ends is not None
    for user, changes in (("bob", False), ("ann", True)):
        params = parameters(f"user.{user}.m", reads(HITS), processingType="merge", nFilesPerJob=2)
        made = submit_for(user, params)
        Task.objects.filter(pk=made).update(parent_id=parent)
        drive(Pilot())
        assert status(made) == "done"
        assert (CatalogueDataset.objects.get(name=HITS).expires != ends) == changes, user


def test_a_manager_runs_the_official_task_of_a_colleague_again() -> None:
    group = frozenset({"phys-higgs"})
    ann, ben = (Caller(name, frozenset({Role.USER, Role.MANAGER}), manages=group) for name in ("ann", "ben"))
    hits = "group.phys-higgs.hits"
    params = dictionary(
        "ann", hits, "group.phys-higgs.log", official=True, workingGroup="phys-higgs", uniqueTaskName=True
    )
    first = submitting.submit(submitting.check(params, ann), by="ann")
    drive(Pilot(always("failed")))
    assert status(first.task_id) == "failed"
    again = submitting.submit(submitting.check(params, ben), by="ben")
    assert again.task_id == first.task_id and not again.is_new
    drive(Pilot())
    assert (status(first.task_id), data_management().describe(hits).owner) == ("done", "ann")
    with pytest.raises(ParamErrors, match=rf"{hits} exists and belongs to ann \(task {first.task_id}\)"):
        submitting.submit(submitting.check({**params, "taskName": "t2"}, ben), by="ben")


def test_files_that_two_users_want_to_merge_lie_apart() -> None:
    """Under the same names of files, in datasets that begin alike."""
    merging = {"mergeOutput": True, "mergeSpec": {"jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"}}
    made = []
    for user in ("ann", "ann.b"):
        params = dictionary(user, f"user.{user}.out", f"user.{user}.log2", **merging)
        params["log"]["value"], params["jobParameters"][0]["value"] = "l.${SN}.log.tgz", "x.${SN}.root"
        made.append(submit_for(user, params))
    drive(Pilot())
    assert [status(number) for number in made] == ["done", "done"]
    scopes = [
        set(File.objects.filter(task_id=n).exclude(type="pseudo_input").values_list("scope", flat=True)) for n in made
    ]
    assert scopes == [{"user.ann"}, {"user.ann.b"}]
