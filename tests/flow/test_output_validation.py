"""Outputs at the end of a task: against the catalogue, twice, and for how long."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from tasks_app.agents.watchdogs import expired_datasets
from tasks_app.ddm import data_management
from tasks_app.ddm.base import SITE
from tasks_app.models import CatalogueDataset, CatalogueFile, File, JobFile, Task
from tasks_app.outcomes import output_check
from tests.flow.driving import add_dataset, dataset, jobs, parameters, reads, settle, status, submit, task
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")


def started(files: int = 2, **more: Any) -> int:
    """A task of which one job has ended well."""
    add_dataset("lab.in", files)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 1, **more}))
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch(1)
    pilot.start(job)
    pilot.end(job)
    settle()
    return made


def stray(dataset: str = "lab.t.out", lfn: str = "stray.root") -> CatalogueFile:
    held = CatalogueDataset.objects.get(name=dataset)
    return held.files.create(
        lfn=lfn, scope="lab", guid="", size=1, adler32="1", endpoint="LOCAL_SE", url="file:///stray"
    )


def names(dataset: str = "lab.t.out") -> list[str]:
    return [f.lfn for page in data_management().list_files(dataset) for f in page]


def test_a_file_that_no_job_made_is_removed_when_the_task_ends() -> None:
    made = started()
    stray()
    drive(Pilot())
    assert status(made) == "done"
    assert names() == ["lab.t.000001.root", "lab.t.000002.root"]
    assert not task(made).error_dialog


def test_files_that_a_user_had_put_into_the_dataset_stay() -> None:
    add_dataset("lab.t.out", 1, open=True, owner="ada")
    made = started()
    drive(Pilot())
    assert status(made) == "done"
    assert names() == ["lab.t.000001.root", "lab.t.000002.root", "lab.t.out.00000"]


def test_outputs_that_are_missing_or_differ_are_named_on_the_task_and_can_be_recovered() -> None:
    made = started(3)
    drive_to_last(made)
    CatalogueFile.objects.filter(lfn="lab.t.000001.root").delete()
    CatalogueFile.objects.filter(lfn="lab.t.000002.root").update(size=7)
    drive(Pilot())
    assert status(made) == "done"
    said = task(made).error_dialog or ""
    assert "1 file of lab.t.out is missing in the catalogue: lab.t.000001.root" in said
    assert "1 file of lab.t.out has another size or checksum than its job reported: lab.t.000002.root" in said
    call_command(
        "recover_lost_files", str(made), "--files", "lab.t.000001.root", "lab.t.000002.root", stdout=StringIO()
    )
    drive(Pilot())
    assert (status(made), len(names())) == ("done", 3)


def drive_to_last(task_id: int) -> None:
    """All jobs but the last end."""
    pilot = Pilot()
    for job in pilot.fetch(len(jobs(task_id)) - 2):
        pilot.start(job)
        pilot.end(job)
    settle()


def test_a_site_may_pause_tasks_whose_outputs_are_wrong(settings: Any) -> None:
    settings.JEDI_CHECK_OUTPUTS = "pause"
    made = started()
    missing = CatalogueFile.objects.get(lfn="lab.t.000001.root")
    missing.delete()
    drive(Pilot())
    assert (status(made), task(made).old_status) == ("paused", "done")
    assert "its outputs need to be checked: 1 file of lab.t.out is missing" in (task(made).error_dialog or "")
    missing.save()


def test_without_the_check_nothing_is_looked_at(settings: Any) -> None:
    settings.JEDI_CHECK_OUTPUTS = "off"
    made = started()
    extra = stray()
    drive(Pilot())
    assert status(made) == "done" and "stray.root" in names()
    extra.delete()


def test_the_command_says_what_is_wrong_and_mends_what_can_be_mended() -> None:
    made = started()
    drive(Pilot())
    call_command("check_outputs", "lab.t", stdout=(said := StringIO()))
    assert said.getvalue() == "4 outputs and logs in the books, all of them in the catalogue as reported\n"
    stray()
    said = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_outputs", str(made), stdout=said)
    assert said.getvalue().splitlines() == ["1 file of lab.t.out that no job made: stray.root", "nothing was changed"]
    said = StringIO()
    with pytest.raises(SystemExit):
        call_command("check_outputs", str(made), "--mend", "--json", stdout=said)
    assert json.loads(said.getvalue())["removed"] == 1
    assert output_check.check(made).is_clean
    assert status(made) == "done"


def test_of_two_jobs_that_processed_the_same_input_one_loses_its_outputs() -> None:
    made = started()
    drive(Pilot())
    first, second = jobs(made)
    with connection.cursor() as cursor:
        # What must never happen: the second job has read what the first one has.
        cursor.execute(
            """UPDATE job_files f SET fileid = o.fileid, lfn = o.lfn FROM job_files o
                WHERE f.pandaid = %s AND o.pandaid = %s AND f.type = 'input' AND o.type = 'input'""",
            [second.id, first.id],
        )
    found = output_check.check(made)
    assert found.void_jobs == [second.id]
    assert output_check.mend(found) == 1
    assert names() == ["lab.t.000001.root"]
    assert File.objects.get(task_id=made, lfn="lab.t.000002.root").status == "lost"
    assert dataset(made, "output").files_finished == 1
    assert output_check.check(made).is_clean
    # The other input says itself which job had it.
    file = File.objects.get(task_id=made, job_id=second.id, type="input")
    JobFile.objects.filter(job_id=second.id, type="input").update(file_id=file.id, lfn=file.lfn)


def test_after_the_end_the_number_of_files_of_an_output_is_that_of_the_files_made() -> None:
    add_dataset("lab.in", 3)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=2))
    drive(Pilot(failing_on("lab.in.00001")))
    row = dataset(made, "output")
    assert (status(made), row.status, row.files, row.files_finished, row.files_failed) == (
        "finished",
        "finished",
        2,
        2,
        2,
    )


# Lifetimes


def test_transient_outputs_are_deleted_when_their_time_is_over_and_nobody_reads_them() -> None:
    add_dataset("lab.in", 2)
    wanted = parameters("lab.t", reads("lab.in"), nFilesPerJob=1)
    wanted["jobParameters"][-1]["transient"] = True
    made = submit(wanted)
    drive(Pilot())
    assert status(made) == "done"
    ends = CatalogueDataset.objects.get(name="lab.t.out").expires
    assert ends is not None and timedelta(days=13, hours=23) < ends - timezone.now() < timedelta(days=14)
    assert CatalogueDataset.objects.get(name="lab.t.log").expires is None
    later = timezone.now() + timedelta(days=15)
    reader = submit(parameters("lab.u", reads("lab.t.out"), nFilesPerJob=1))
    settle()
    assert expired_datasets.run().items == 0
    assert expired_datasets.run(now=later).items == 0, "a task still reads it"
    drive(Pilot())
    assert status(reader) == "done"
    assert expired_datasets.run(now=later).items == 1
    assert not CatalogueDataset.objects.filter(name="lab.t.out").exists()
    assert output_check.check(made).gone == ["lab.t.out"]


def test_a_dataset_that_is_made_again_is_kept_again() -> None:
    made = started(1)
    drive(Pilot())
    data_management().keep_until(["lab.t.out"], timezone.now(), by=SITE)
    call_command("recover_lost_files", str(made), "--files", "lab.t.000001.root", stdout=StringIO())
    assert CatalogueDataset.objects.get(name="lab.t.out").expires is None
    drive(Pilot())
    assert status(made) == "done"


def test_empty_outputs_of_the_vos_users_are_deleted_and_the_others_kept_for_two_weeks() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, maxAttempt=1))
    settle()
    Task.objects.filter(pk=made).update(vo="atlas")
    drive(Pilot(failing_on("lab.in.00000")))
    assert status(made) == "failed"
    assert not CatalogueDataset.objects.filter(name="lab.t.out").exists()
    assert CatalogueDataset.objects.get(name="lab.t.log").expires is not None
