"""Containers of datasets: as inputs, as places for outputs, and in the local catalogue."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jedisite.identity.callers import Caller, Role
from tasks_app.agents import feeder, refiner
from tasks_app.ddm import data_management
from tasks_app.ddm.addresses import storage_path
from tasks_app.ddm.base import SITE, UnknownDatasetError
from tasks_app.inputs.registering import register_container, register_dataset
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset
from tasks_app.submission import command_queue, submitting
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
)
from tests.flow.pilot import Pilot, always, drive
from tests.flow.test_analysis import DATA, dataset_at, queue

pytestmark = pytest.mark.usefixtures("books")


def container(name: str, *datasets: str) -> None:
    for place, member in enumerate(datasets):
        add_dataset(member, place + 2)
    register_container(name, datasets)


def masters(task_id: int) -> list[tuple[str, int, str | None]]:
    found = task(task_id).datasets.filter(type="input", master_id=None).order_by("list_position")
    return [(row.name, row.files, row.container_name) for row in found]


def test_a_misspelt_member_of_a_container_is_refused_with_what_may_be_meant() -> None:
    add_dataset("lab.measurements", 1)
    with pytest.raises(
        ValueError, match=r"the dataset lab\.measurments does not exist .*\. Did you mean lab\.measurements\?$"
    ):
        register_container("lab.all/", ["lab.measurments"])


@pytest.mark.parametrize("more", [{"expand": True}, {}])
def test_each_dataset_of_a_container_becomes_an_input_of_its_own(more: dict[str, bool]) -> None:
    container("lab.all/", "lab.a", "lab.b")
    made = submit(parameters("lab.t", reads("lab.all/", **more), nFilesPerJob=2))
    drive(Pilot())
    assert status(made) == "done"
    assert masters(made) == [("lab.a", 2, "lab.all/"), ("lab.b", 3, "lab.all/")]
    assert [inputs(job.id) for job in jobs(made)] == [
        ["lab.a.00000", "lab.a.00001"],
        ["lab.b.00000", "lab.b.00001"],
        ["lab.b.00002"],
    ]


def test_expand_finds_a_container_whose_slash_is_left_out_and_takes_a_dataset_as_it_is() -> None:
    container("lab.all/", "lab.a", "lab.b")
    add_dataset("lab.c", 1)
    made = submit(parameters("lab.t", reads("lab.all,lab.c", expand=True), nFilesPerJob=2))
    drive(Pilot())
    assert status(made) == "done"
    assert [name for name, _, _ in masters(made)] == ["lab.a", "lab.b", "lab.c"]


def test_a_container_that_does_not_exist_breaks_the_task_unless_missing_inputs_are_ignored() -> None:
    add_dataset("lab.a", 2)
    broken = submit(parameters("lab.t", reads("lab.none/"), nFilesPerJob=1))
    other = submit(parameters("lab.u", reads("lab.none/,lab.a"), nFilesPerJob=1, ignoreMissingInDS=True))
    drive(Pilot())
    assert status(broken) == "broken"
    assert "lab.none/ does not exist" in (task(broken).error_dialog or "")
    assert (status(other), masters(other)) == ("done", [("lab.a", 2, None)])


def test_an_output_named_like_a_container_is_a_dataset_of_the_task_in_it() -> None:
    add_dataset("lab.in", 2)
    wanted = parameters("lab.t", reads("lab.in"), nFilesPerJob=1)
    wanted["jobParameters"][-1]["dataset"] = "lab.results/"
    first = submit(wanted)
    drive(Pilot())
    second = submit({**wanted, "taskName": "lab.t2", "log": {**wanted["log"], "dataset": "lab.t2.log"}})
    drive(Pilot())
    assert (status(first), status(second)) == ("done", "done")
    assert data_management().constituents("lab.results/") == [f"lab.results.{first}", f"lab.results.{second}"]
    info = data_management().describe("lab.results")
    assert (info.name, info.files, info.open) == ("lab.results/", 4, False)


def test_an_output_goes_into_the_container_that_its_item_names() -> None:
    add_dataset("lab.in", 1)
    wanted = parameters("lab.t", reads("lab.in"), nFilesPerJob=1)
    wanted["jobParameters"][-1]["container"] = "lab.results/"
    made = submit(wanted)
    settle()
    assert data_management().constituents("lab.results/") == ["lab.t.out"]
    assert data_management().describe("lab.results/").open
    drive(Pilot())
    assert status(made) == "done"
    assert not data_management().describe("lab.results/").open
    assert dataset(made, "output").container_name == "lab.results/"


MADE = "user.ada.made/"


def analysis(name: str, source: str, output: str, **more: Any) -> int:
    """A user's task as PanDA's clients submit them: of what makes no files, the outputs are deleted when it ends."""
    raw = parameters(
        name, reads(source), vo="atlas", official=False, nFilesPerJob=1, maxAttempt=1, noEmail=True, **more
    )
    raw["log"]["dataset"], raw["jobParameters"][-1]["dataset"] = f"{name}.log/", output
    return submitting.submit(submitting.check(raw, Caller("ada", frozenset({Role.USER}))), by="ada").task_id


@pytest.mark.parametrize(("first", "again"), [("failed", "retry"), ("aborted", "retry"), ("failed", "incexec")])
def test_what_a_task_makes_when_it_runs_again_is_in_its_container_and_its_readers_wait(first: str, again: str) -> None:
    queue("NEAR", "SE_NEAR")
    dataset_at("SE_NEAR")
    made = analysis("user.ada.t", DATA, MADE)
    if first == "aborted":
        settle()
        command_queue.give_command(made, "kill", by="ada")
    drive(Pilot(always("failed"), site="NEAR"))
    assert status(made) == first
    assert data_management().constituents(MADE) == []
    command_queue.give_command(made, again, by="ada")
    own = f"{MADE.rstrip('/')}.{made}"
    readers = [
        analysis(f"user.ada.early{n}", name, f"user.ada.early{n}.out/") for n, name in enumerate((MADE, own, MADE[:-1]))
    ]
    for _ in range(2):
        refiner.run()
        feeder.run()
    assert {status(one) for one in readers} <= {"pending", "defined"}
    assert f"it waits for task {made}, which makes it" in (task(readers[0]).error_dialog or "")
    settle()
    assert data_management().constituents(MADE) == [own] and data_management().describe(MADE).open
    readers.append(analysis("user.ada.late", MADE, "user.ada.late.out/", parent_tid=made))
    settle()
    drive(Pilot(site="NEAR"))
    assert [status(one) for one in (made, *readers)] == ["done"] * 5
    assert {dataset(one).files_finished for one in readers} == {4}
    assert data_management().describe(MADE).files == 4


@pytest.mark.parametrize("without", ["allowEmptyInput", "ignoreMissingInDS"])
def test_a_task_that_can_do_without_an_input_waits_for_one_that_is_being_made(without: str) -> None:
    queue("NEAR", "SE_NEAR")
    dataset_at("SE_NEAR")
    made = analysis("user.ada.t", DATA, MADE)
    drive(Pilot(always("failed"), site="NEAR"))
    assert status(made) == "failed"
    command_queue.give_command(made, "retry", by="ada")
    reader = analysis("user.ada.r", f"{MADE.rstrip('/')}.{made}", "user.ada.r.out/", **{without: True})
    for _ in range(2):
        refiner.run()
        feeder.run()
    assert f"it waits for task {made}, which makes it" in (task(reader).error_dialog or "")
    drive(Pilot(site="NEAR"))
    assert (status(made), status(reader), dataset(reader).files_finished) == ("done", "done", 4)


@pytest.mark.parametrize("more", [{}, {"ignoreMissingInDS": True}], ids=["all", "what there is"])
def test_a_container_that_is_still_filled_is_waited_for_also_beside_another_input(more: dict[str, Any]) -> None:
    queue("NEAR", "SE_NEAR")
    dataset_at("SE_NEAR")
    made = analysis("user.ada.t", DATA, MADE)
    drive(Pilot(always("failed"), site="NEAR"))
    command_queue.give_command(made, "retry", by="ada")
    reader = analysis("user.ada.r", f"{MADE},{DATA}", "user.ada.r.out/", **more)
    refiner.run()
    assert f"it waits for task {made}, which makes it" in (task(reader).error_dialog or "")
    drive(Pilot(site="NEAR"))
    read = Dataset.objects.filter(task_id=reader, type="input").values_list("name", "files_finished")
    assert dict(read) == {DATA: 4, f"{MADE.rstrip('/')}.{made}": 4}


def test_files_that_pandas_pilots_do_not_see_are_named(tmp_path: Path, settings: Any) -> None:
    settings.JEDI_PILOT, settings.JEDI_PAYLOAD_READS = "panda", [str(tmp_path / "seen")]
    (tmp_path / "seen").mkdir()
    said = []
    for number, path in enumerate((tmp_path / "seen" / "a", tmp_path / "b")):
        path.write_text("")
        err = StringIO()
        call_command("register_dataset", f"lab.{number}", str(path), stderr=err)
        said.append(err.getvalue())
    assert said[0] == "" and f"PanDA's pilots do not see {tmp_path / 'b'}:" in said[1]
    settings.JEDI_PILOT = ""
    err = StringIO()
    call_command("register_dataset", "lab.2", str(tmp_path / "b"), stderr=err)
    assert "own pilots read them there; PanDA's (JEDI_PILOT=panda) see the site's storage" in err.getvalue()
    with pytest.raises(CommandError, match=r"none cannot be read: No such file or directory; nothing was registered"):
        call_command("register_dataset", "lab.3", str(tmp_path / "none"))


def test_the_command_registers_containers_and_open_datasets(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    call_command("register_dataset", "lab.a", str(tmp_path / "one"), "--open")
    call_command("register_dataset", "lab.a", str(tmp_path / "two"))
    with pytest.raises(CommandError, match=r"lab\.a cannot be read: .* end its name with a slash: lab\.all/$"):
        call_command("register_dataset", "lab.all", "lab.a")
    call_command("register_dataset", "lab.all/", "lab.a")
    assert data_management().describe("lab.all/").files == 2
    with pytest.raises(CommandError, match=r"lab\.a exists already and is closed.*--open"):
        call_command("register_dataset", "lab.a", str(tmp_path / "two"))
    with pytest.raises(CommandError, match=r"lab\.none does not exist"):
        call_command("register_dataset", "lab.all/", "lab.none")


def test_files_that_no_pilot_can_carry_are_refused_by_name_and_nothing_is_registered(tmp_path: Path) -> None:
    (tmp_path / "good.dat").write_text("1")
    for name, why in {".hidden": "begins with a dot", "a,b.dat": "has , in it", "a\nb": "cannot be printed"}.items():
        (odd := tmp_path / name).write_text("1")
        with pytest.raises(
            CommandError, match=rf"(?s)cannot transfer the file {re.escape(repr(name))}.*{why}.*Nothing was"
        ):
            call_command("register_dataset", "lab.a", str(tmp_path))
        odd.unlink()
    assert not CatalogueDataset.objects.exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match=r"no file is in .*empty"):
        call_command("register_dataset", "lab.a", str(tmp_path / "empty"))
    out = StringIO()
    call_command("register_dataset", "lab.a", str(tmp_path), stdout=out)
    assert out.getvalue() == "lab.a: 1 file\n"


def test_of_files_that_were_made_again_only_the_last_attempt_is_listed() -> None:
    add_dataset("lab.a")
    names = ["x.000001.root", "x.000001.root.2", "x.000001.root.10", "x.000002.root.1", "x.000003.root", "run.12"]
    held = CatalogueDataset.objects.get(name="lab.a")
    for name in names:
        CatalogueFile.objects.create(
            dataset=held, lfn=name, scope="lab", guid="", size=1, adler32="1", endpoint="SE", url="file:///x"
        )
    listed = [f.lfn for page in data_management().list_files("lab.a", 2) for f in page]
    assert sorted(listed) == ["run.12", "x.000001.root.10", "x.000002.root.1", "x.000003.root"]
    everything = [f.lfn for page in data_management().list_files("lab.a", 2, all_attempts=True) for f in page]
    assert sorted(everything) == sorted(names)


def stored(storage: Path, lfn: str) -> Path:
    """A file in its place in the storage."""
    path = storage_path(storage, "lab", lfn)
    path.parent.mkdir(parents=True)
    path.write_text("x")
    return path


def test_deleting_removes_only_files_in_their_places_in_the_sites_own_storage(tmp_path: Path, settings: object) -> None:
    own, foreign = tmp_path / "storage", tmp_path / "home"
    settings.JEDI_STORAGE = own  # type: ignore[attr-defined]
    file = stored(own, "storage.root")
    for folder in (own, foreign):
        folder.mkdir(exist_ok=True)
        (folder / f"{folder.name}.elsewhere").write_text("x")
    elsewhere = [folder / f"{folder.name}.elsewhere" for folder in (own, foreign)]
    register_dataset("lab.a", "lab", [file, *elsewhere])
    register_dataset("lab.b", "lab", [file])
    assert data_management().delete(["lab.a", "lab.unknown"], by=SITE) == 1
    assert file.exists(), "another dataset names it"
    assert data_management().remove("lab.b", ["storage.root"], by=SITE) == 1
    assert not file.exists()
    assert all(one.exists() for one in elsewhere)
    with pytest.raises(UnknownDatasetError, match=r"lab\.a"):
        data_management().describe("lab.a")


def test_a_file_that_cannot_be_deleted_keeps_none_of_the_others(tmp_path: Path, settings: object) -> None:
    settings.JEDI_STORAGE = tmp_path  # type: ignore[attr-defined]
    bad, good = stored(tmp_path, "a.root"), stored(tmp_path, "b.root")
    register_dataset("lab.a", "lab", [bad, good])
    bad.unlink()
    bad.mkdir()
    assert data_management().delete(["lab.a"], by=SITE) == 1
    assert bad.is_dir() and not good.exists()


def names_of(path: Path) -> dict[str, str]:
    """Addresses that lead to one file: by another host, slashes, steps up and down, capitals in codes, and links."""
    folder = path.parent
    (folder.parent / "link").symlink_to(folder)
    (folder / "other.root").symlink_to(path)
    return {
        "no host": f"file://{path}",
        "two slashes": f"file://localhost{folder}//{path.name}",
        "up and down": f"file://localhost{folder}/x/../{path.name}",
        "codes": f"file://localhost{folder}/%{ord(path.name[0]):x}{path.name[1:]}",
        "a link to the folder": f"file://localhost{folder.parent}/link/{path.name}",
        "a link to the file": f"file://localhost{folder}/other.root",
    }


@pytest.mark.parametrize("kind", ["no host", "two slashes", "up and down", "codes", "a link to the folder"])
def test_a_file_that_another_dataset_names_in_other_words_stays(kind: str, tmp_path: Path, settings: object) -> None:
    settings.JEDI_STORAGE = tmp_path / "storage"  # type: ignore[attr-defined]
    file = stored(tmp_path / "storage", "hits.root")
    register_dataset("lab.a", "lab", [file])
    other = register_dataset("lab.b", "lab", [file])
    other.files.update(url=names_of(file)[kind])
    assert data_management().delete(["lab.b"], by=SITE) == 1
    assert file.exists(), "lab.a names it"
    data_management().delete(["lab.a"], by=SITE)
    assert not file.exists()


def test_nothing_is_deleted_outside_the_storage_wherever_a_name_seems_to_lie(tmp_path: Path, settings: object) -> None:
    own, home = tmp_path / "storage", tmp_path / "home"
    settings.JEDI_STORAGE = own  # type: ignore[attr-defined]
    for folder in (own, home):
        folder.mkdir()
        (folder / "a.root").write_text("x")
    (own / "out").symlink_to(home)
    (own / "link.root").symlink_to(home / "a.root")
    register_dataset("lab.a", "lab", [own / "a.root"])
    for path in (f"{own}/out/a.root", f"{own}/link.root", f"{own}/../home/a.root", "relative.root", f"{own}/%00"):
        held = CatalogueDataset.objects.create(name="lab.b", scope="lab")
        held.files.create(
            lfn="b", scope="lab", guid="", size=1, adler32="1", endpoint="SE", url=f"file://localhost{path}"
        )
        assert data_management().delete(["lab.b"], by=SITE) == 1
        assert (home / "a.root").exists() and (own / "a.root").exists() and (own / "link.root").is_symlink()


def test_a_container_is_deleted_without_its_datasets() -> None:
    container("lab.all/", "lab.a", "lab.b")
    data_management().delete(["lab.all/"], by=SITE)
    assert data_management().describe("lab.b").files == 3
    add_files("lab.b", [7])
