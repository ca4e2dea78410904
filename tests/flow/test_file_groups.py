"""Groups of files that stay together: each is a job with a command and outputs of its own."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client
from django.utils import timezone

from tasks_app.agents import adder, feeder, refiner
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE, Maker
from tasks_app.explaining.queries import facts_of
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.gates import walk
from tasks_app.models import CatalogueFile, Dataset, JobFile, JobParams
from tasks_app.outcomes.recovery import recover
from tasks_app.submission import command_queue
from tests.flow.balance import assert_books_balance
from tests.flow.driving import (
    add_dataset,
    add_files,
    dataset,
    files,
    inputs,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    template,
)
from tests.flow.pilot import Pilot, drive, failing_on
from tests.flow.test_commands import command

pytestmark = pytest.mark.usefixtures("books")
Group = Mapping[str, Sequence[int]]
A, B = "lab.a", "lab.b"
COMMAND: dict[str, Any] = {"type": "constant", "value": '-o "${XML_OUTMAP}" -p "${XML_EXESTR}"'}


def xml(*groups: Group, head: str = "", outputs: Sequence[str] = ("hist.root",)) -> str:
    """Groups of files by their numbers; each is a line with its number, and writes the outputs."""
    text = f"<?xml version='1.0'?><submission><command>run.sh</command>{head}"
    for number, group in enumerate(groups):
        text += f"<job><option name='line' prepend='true' forward='true'>{number}</option>"
        for name, numbers in group.items():
            named = "".join(f"<file>{name}.{one:05d}</file>" for one in numbers)
            text += f"<inds><name>lab:{name}</name>{named}</inds>"
        text += "".join(f"<output>{one}</output>" for one in outputs[: number + 1]) + "</job>"
    return text + "</submission>"


def groups_task(text: str, *items: dict[str, Any], **more: Any) -> int:
    return submit(parameters("lab.t", *(items or (reads(A),)), COMMAND, loadXML=text, **more))


def read(job_id: int, name: str) -> list[int]:
    return sorted(int(lfn.rpartition(".")[2]) for lfn in inputs(job_id, dataset=name))


def test_each_group_is_one_job_with_its_own_command_and_outputs() -> None:
    add_dataset(A, 6)
    add_dataset(B, 3)
    made = groups_task(
        xml({A: [4, 0], B: [1]}, {A: [5], B: [0]}, {A: [2, 1, 3], B: [1, 2]}, outputs=("hist.root", "tree.root")),
        reads(A),
        reads(B, "IN2"),
    )
    drive(Pilot())
    assert status(made) == "done"
    assert sorted((read(job.id, A), read(job.id, B)) for job in jobs(made)) == [
        ([0, 4], [1]),
        ([1, 2, 3], [1, 2]),
        ([5], [0]),
    ]
    for job in jobs(made):
        line = {0: 0, 5: 1, 1: 2}[read(job.id, A)[0]]
        text = JobParams.objects.get(pk=job.id).params
        assert f"line={line} run.sh" in unquote(text)
        lfns = list(JobFile.objects.filter(job_id=job.id, type="output").order_by("id").values_list("lfn", flat=True))
        names = ["hist.root", "tree.root"][: line + 1]
        assert [lfn.partition(".root.")[2] for lfn in sorted(lfns)] == [f"line{line}.{name}" for name in names]
        assert len({lfn.split(".")[2] for lfn in lfns}) == 1, "the outputs of one job have one number"
        said = text.partition('-o "')[2].partition('"')[0]
        assert ast.literal_eval(said) == dict(zip(names, sorted(lfns), strict=True))
    out = dataset(made, type="output")
    assert (out.files, out.files_finished) == (5, 5)
    assert {row.status for row in files(made)} == {"finished"}
    second = Dataset.objects.get(task_id=made, name=B)
    assert (second.files, second.files_used, second.files_finished) == (4, 4, 4), "one file is read by two groups"


def test_a_group_whose_job_fails_is_tried_again_as_a_whole() -> None:
    add_dataset(A, 5)
    made = groups_task(xml({A: [0, 1]}, {A: [2, 3]}, {A: [4, 0]}), maxAttempt=2)
    failed: set[int] = set()

    def once(job: dict[str, Any]) -> str:
        first = f"{A}.00003" in job["inFiles"] and not failed
        failed.update([job["PandaID"]] if first else [])
        return "failed" if first else "finished"

    drive(Pilot(once))
    assert status(made) == "done"
    assert states(made) == {"finished": 3, "failed": 1}
    assert [read(job.id, A) for job in jobs(made) if read(job.id, A)[0] == 2] == [[2, 3], [2, 3]]


def test_a_task_without_files_has_a_job_for_each_group() -> None:
    made = submit(parameters("lab.t", COMMAND, loadXML=xml({}, {}, {}), noInput=True))
    drive(Pilot())
    assert (status(made), states(made)) == ("done", {"finished": 3})
    said = [unquote(JobParams.objects.get(pk=job.id).params) for job in jobs(made)]
    assert sorted(text.partition("line=")[2][0] for text in said) == ["0", "1", "2"]


def test_every_job_reads_all_files_of_a_dataset_that_is_used_many_times() -> None:
    add_dataset(A, 2)
    add_dataset(B, 3)
    many = f"<inds manytime='true'><name>{B}</name></inds>"
    made = groups_task(xml({A: [0], B: [0, 2]}, {A: [1]}, head=many), reads(A), reads(B, "IN2"))
    drive(Pilot())
    assert status(made) == "done"
    assert [read(job.id, B) for job in jobs(made)] == [[0, 2], [0, 2]]


@pytest.mark.parametrize("mode", [1, 2])
def test_a_group_may_be_divided_but_never_mixed(mode: int) -> None:
    add_dataset(A, 7, size=6 * 1024**3)
    made = groups_task(xml({A: [0, 1, 2, 3]}, {A: [4, 5, 6]}), groupBoundaryID=mode, nGBPerJob=8)
    drive(Pilot())
    assert status(made) == "done"
    found = [read(job.id, A) for job in jobs(made)]
    assert sorted(number for one in found for number in one) == list(range(7))
    assert len(found) > 2
    assert all(len({number < 4 for number in one}) == 1 for one in found)


def test_files_that_no_group_names_are_not_read() -> None:
    add_dataset(A, 5)
    made = groups_task(xml({A: [3]}))
    drive(Pilot())
    assert (status(made), dataset(made).files) == ("done", 1)


def test_a_task_waits_while_a_file_of_a_group_may_come() -> None:
    add_dataset(A, 2, open=True)
    made = groups_task(xml({A: [0]}, {A: [1, 2]}), runUntilClosed=True)
    drive(Pilot())
    assert not jobs(made)
    assert f"{A}.00002" in (task(made).error_dialog or "")
    add_files(A, [2])
    data_management().close([A], by=SITE)
    look_again()
    drive(Pilot())
    assert status(made) == "done"
    assert sorted(read(job.id, A) for job in jobs(made)) == [[0], [1, 2]]


@pytest.mark.parametrize(("wish", "state"), [({}, "broken"), ({"waitInput": True}, "pending")])
def test_a_missing_file_of_a_group_ends_the_task_unless_it_waits(wish: dict[str, Any], state: str) -> None:
    add_dataset(A, 2)
    made = groups_task(xml({A: [0]}, {A: [1, 2]}), **wish)
    drive(Pilot())
    assert (status(made), jobs(made)) == (state, [])
    assert f"{A}.00002" in (task(made).error_dialog or "")


def test_with_a_file_of_it_a_whole_group_is_lost() -> None:
    add_dataset(A, 4, open=True)
    add_dataset(B, 2, open=True)
    text = xml({A: [0, 1], B: [0]}, {A: [2, 3], B: [1]})
    made = groups_task(text, reads(A), reads(B, "IN2"), runUntilClosed=True)
    refiner.run()
    feeder.run()
    data_management().remove(B, [f"{B}.00001"], by=SITE)
    look_again()
    feeder.run()
    assert [(f.lfn[-1], f.status) for f in files(made)] == [
        ("0", "ready"),
        ("1", "ready"),
        ("2", "lost"),
        ("3", "lost"),
        ("0", "ready"),
        ("1", "lost"),
    ]
    data_management().close([A, B], by=SITE)
    look_again()
    drive(Pilot())
    assert [read(job.id, A) for job in jobs(made)] == [[0, 1]]
    assert status(made) == "finished"
    assert dataset(made, name=A).status == "finished"
    assert task(made).error_dialog == (
        "2 of 4 input files were processed; group 1 is left out, with 2 files, since no job is made of a group that lacks a "
        f"file: {B} no longer has {B}.00001"
    )


def test_a_task_that_is_run_again_after_files_of_its_groups_were_lost_is_finished_and_says_which_are_left_out() -> None:
    add_dataset(A, 5)
    made = groups_task(xml({A: [0, 1]}, {A: [2]}, {A: [3, 4]}), maxAttempt=1)
    drive(Pilot(failing_on(f"{A}.00000", f"{A}.00003")))
    assert (status(made), dataset(made).files_finished) == ("finished", 1)
    data_management().remove(A, [f"{A}.00001", f"{A}.00004"], by=SITE)
    command(made, "incexec")
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("finished", 1)
    said = task(made).error_dialog or ""
    assert said.startswith(
        "1 of 5 input files were processed; groups 0, 2 are left out, with 4 files, since no job is made of a group that lacks "
        f"a file: {A} no longer has {A}.00001, {A}.00004"
    ), said
    refused = f"task {made} is finished: 4 input files are lost, and all others were processed; nothing to retry. To have them"
    with pytest.raises(command_queue.CommandRefusedError, match=refused):
        command(made, "retry")
    add_files(A, [1, 4])
    command(made, "incexec")
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("done", 5)


def by_block(name: str, *blocks: int | None) -> None:
    for number, block in enumerate(blocks):
        CatalogueFile.objects.filter(lfn=f"{name}.{number:05d}").update(lumi_block=block)


def test_luminosity_blocks_are_groups() -> None:
    add_dataset(A, 6)
    by_block(A, 7, 3, 7, 3, 3, 9)
    made = submit(parameters("lab.t", reads(A), groupBoundaryID=3))
    drive(Pilot())
    assert status(made) == "done"
    assert sorted(read(job.id, A) for job in jobs(made)) == [[0, 2], [1, 3, 4], [5]]
    assert {f.boundary_id for f in files(made)} == {3, 7, 9}


def test_a_file_without_luminosity_block_is_in_no_group() -> None:
    add_dataset(A, 2)
    by_block(A, 7, None)
    made = submit(parameters("lab.t", reads(A), groupBoundaryID=3))
    drive(Pilot())
    assert status(made) == "broken"
    assert f"{A}.00001 has no luminosity block" in (task(made).error_dialog or "")


def test_listed_files_say_their_groups() -> None:
    add_dataset(A, 4)
    named = [{"lfn": f"{A}.{n:05d}", "boundaryID": group} for n, group in ((3, 1), (0, 2), (1, 1))]
    made = submit(parameters("lab.t", reads(A, files=named), groupBoundaryID=4))
    drive(Pilot())
    assert status(made) == "done"
    assert [read(job.id, A) for job in jobs(made)] == [[1, 3], [0]]


def test_files_are_released_by_whole_luminosity_blocks() -> None:
    add_dataset(A, 5, open=True)
    by_block(A, 1, 1, 2, 2, 3)
    made = submit(parameters("lab.t", reads(A), releasePerLB=True, runUntilClosed=True, nFilesPerJob=1))
    refiner.run()
    feeder.run()
    assert dataset(made).files_to_be_used == 4, "the last block may still grow"
    drive(Pilot())
    assert len(jobs(made)) == 4
    assert "a later luminosity block" in (task(made).error_dialog or "")
    data_management().close([A], by=SITE)
    look_again()
    drive(Pilot())
    assert (status(made), len(jobs(made))) == ("done", 5)


@pytest.mark.parametrize(
    ("blocks", "warning"),
    [
        ((None, None, None), "None of the 3 input files has a luminosity block: orderByLB, respectLB have no effect."),
        ((1, None, None), "2 of 3 input files have no luminosity block: orderByLB, respectLB take them as one block."),
        ((1, 1, 2), ""),
    ],
)
def test_a_task_that_asks_for_luminosity_blocks_is_warned_of_files_without(
    blocks: tuple[int | None, ...], warning: str, client: Client, make_user: Any
) -> None:
    add_dataset(A, 3)
    by_block(A, *blocks)
    made = submit(parameters("lab.t", reads(A), respectLB=True, orderByLB=True))
    refiner.run()
    feeder.run()
    client.force_login(make_user("reader"))
    page = client.get(f"/tasks/{made}/").content.decode()
    assert (f"<strong>Warning:</strong> {warning}</p>" in page) is bool(warning)
    drive(Pilot())
    why = first_no(walk(facts_of(task(made), timezone.now(), {}, None)))
    assert why is not None and (why.code == "task_done_and_warned") is bool(warning)


def test_groups_are_released_one_by_one_as_their_files_come() -> None:
    add_dataset(A, 2, open=True)
    made = groups_task(xml({A: [0]}, {A: [1, 2]}, {A: [3]}), releasePerGroup=True)
    drive(Pilot())
    assert [read(job.id, A) for job in jobs(made)] == [[0]]
    assert status(made) not in ("done", "broken", "failed")
    assert "until all files of their groups are there" in (task(made).error_dialog or "")
    add_files(A, [2])
    data_management().close([A], by=SITE)
    look_again()
    drive(Pilot())
    assert sorted(read(job.id, A) for job in jobs(made)) == [[0], [1, 2]], "the dataset is closed, and it waits still"
    assert status(made) not in ("done", "broken", "failed")
    add_files(A, [3])
    look_again()
    drive(Pilot())
    assert (status(made), len(jobs(made))) == ("done", 3)


def test_a_group_is_released_when_datasets_of_its_container_have_its_files() -> None:
    """Files of fixed names: a job that is tried again writes those of the job that failed."""
    add_dataset("lab.in", 2)
    data_management().add_to_container("lab.all/", ["lab.in"], by=Maker("ada"))
    text = "<?xml version='1.0'?><submission>"
    for n in (0, 1):
        read_one = f"<inds><name>lab.in</name><file>lab.in.0000{n}</file></inds>"
        text += f"<job><command>run</command>{read_one}<output>a{n}</output></job>"
    out = template("output", "lab.p", "lab.p.out", hidden=True, container="lab.all/")
    first = submit(
        parameters("lab.p", loadXML=text + "</submission>", maxAttempt=2, jobParameters=[reads("lab.in"), COMMAND, out])
    )
    text = "<?xml version='1.0'?><submission><job><inds><name>lab.all</name><file>lab.p.a0</file></inds></job>"
    text += "<job><inds><name>lab.all</name><file>lab.p.a1</file><file>lab.in.00001</file></inds></job></submission>"
    second = submit(parameters("lab.c", loadXML=text, releasePerGroup=True, jobParameters=[reads("lab.all/")]))
    failed: set[int] = set()

    def once(job: dict[str, Any]) -> str:
        bad = "lab.in.00001" in job["inFiles"] and "lab.p.a1" not in job["inFiles"] and len(failed) < 2
        failed.update([job["PandaID"]] if bad else [])
        return "failed" if bad else "finished"

    drive(Pilot(once))
    assert (status(first), len(failed)) == ("finished", 2), task(first).error_dialog
    assert [inputs(job.id) for job in jobs(second)] == [["lab.p.a0"]]
    assert status(second) not in ("done", "broken", "failed", "aborted"), "the end of its producer does not end it"
    command_queue.give_command(first, "retry", by="ada")
    drive(Pilot(once))
    assert (status(first), status(second)) == ("done", "done")
    assert sorted(sorted(inputs(job.id)) for job in jobs(second)) == [["lab.in.00001", "lab.p.a1"], ["lab.p.a0"]]


def test_an_output_is_made_again_though_files_of_earlier_blocks_were_given_up() -> None:
    """Files are used in an order of their own, by which the first ones found may be those that were given up."""
    add_dataset(A, 4)
    by_block(A, 1, 1, 2, 2)
    made = submit(parameters("lab.t", reads(A), respectLB=True, nFilesPerJob=1))
    settle()
    pilot = Pilot(failing_on("lab.a.00000"))
    pilot.work()
    adder.run()
    command_queue.give_command(made, "finish", by="ada", parameters={"soft": True})
    drive(pilot)
    assert status(made) == "finished"
    lost = JobFile.objects.get(job_id=jobs(made)[3].id, type="output")
    recover(made, [lost.lfn], by="ada")
    assert_books_balance("when the output is lost")
    drive(pilot)
    assert (status(made), dataset(made).files_finished) == ("finished", 3)


def test_scouts_take_whole_luminosity_blocks() -> None:
    add_dataset(A, 40)
    by_block(A, *(n // 7 for n in range(40)))
    made = submit(parameters("lab.t", reads(A), releasePerLB=True, nFilesPerJob=1, skipScout=False))
    refiner.run()
    feeder.run()
    assert dataset(made).files_to_be_used == 14


def test_a_group_may_write_nothing_but_its_log() -> None:
    add_dataset(A, 1)
    made = submit(
        parameters(
            "lab.t",
            loadXML=xml({A: [0]}, outputs=()),
            jobParameters=[reads(A), COMMAND, template("output", "o.${SN}", "lab.t.out", hidden=True)],
        )
    )
    drive(Pilot())
    assert status(made) == "done"
    assert not JobFile.objects.filter(job_id=jobs(made)[0].id, type="output").exists()


@pytest.mark.parametrize(("mode", "mapped"), [(3, False), (4, True)])
def test_outputs_are_mapped_to_their_input_dataset(mode: int, mapped: bool) -> None:
    for name in (A, B):
        add_dataset(name, 2)
        by_block(name, 1, 2)
    made = submit(parameters("lab.t", reads(f"{A},{B}"), groupBoundaryID=mode))
    drive(Pilot())
    assert status(made) == "done"
    masters = {row.id: row.name for row in Dataset.objects.filter(task_id=made, type="input")}
    outputs = Dataset.objects.filter(task_id=made, type="output").order_by("id")
    found = {row.name: (masters[row.provenance_id or 0], row.files_finished) for row in outputs}
    assert found == ({"lab.t.out": (A, 2), "lab.t.out.in2": (B, 2)} if mapped else {"lab.t.out": (A, 4)})
    for job in jobs(made):
        wrote = JobFile.objects.get(job_id=job.id, type="output")
        read_of = JobFile.objects.get(job_id=job.id, type="input").dataset
        assert not mapped or wrote.dataset == ("lab.t.out" if read_of == A else "lab.t.out.in2")
        assert wrote.lfn in JobParams.objects.get(pk=job.id).params
