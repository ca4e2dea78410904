"""Columns that people and PanDA's clients read: what stands in them comes from the task, its files and its jobs."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tasks_app.api.panda.panda_names import TASK, rows_told
from tasks_app.models import File, JobRetryHistory, OutputTemplate, Task
from tests.flow.driving import add_dataset, files, parameters, reads, settle, status, submit, template
from tests.flow.pilot import Pilot, drive, failing_on

pytestmark = pytest.mark.usefixtures("books")


def test_units_and_leaks_are_what_pandas_clients_are_told() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), ioIntensity=300, ioIntensityUnit="kBPerS", nFilesPerJob=1))
    settle()
    Task.objects.filter(pk=made).update(disk_io_unit="kBPerS", memory_leak_core=5, memory_leak_x2=1.5)
    (told,) = rows_told(Task.objects.filter(pk=made), TASK)
    assert (told["ioIntensityUnit"], told["diskIOUnit"]) == ("kBPerS", "kBPerS")
    assert (told["memory_leak_core"], float(told["memory_leak_x2"])) == (5, 1.5)
    drive(Pilot())


def test_a_file_says_when_it_was_listed_and_last_tried(client: Client) -> None:
    began = timezone.now()
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    (file,) = files(made)
    assert file.last_attempt_time is None and began < file.creation_date < timezone.now()
    drive(Pilot())
    assert status(made) == "done"
    assert began < file.creation_date < (File.objects.get(pk=file.id).last_attempt_time or began)


def test_templates_of_outputs_and_attempts_of_jobs_are_listed(admin_client: Client) -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), template("log", "lab.${SN}.log", "lab.log"), nFilesPerJob=1))
    settle()
    kinds = OutputTemplate.objects.filter(task_id=made).values_list("out_type", flat=True)
    page = admin_client.get(reverse("admin:tasks_app_outputtemplate_changelist")).content.decode()
    assert set(kinds) == {"log", "output"} and all(f">{kind}<" in page for kind in kinds)
    began = timezone.now()
    drive(Pilot(failing_on("lab.in.00000")))
    found = JobRetryHistory.objects.filter(task_id=made)
    page = admin_client.get(reverse("admin:tasks_app_jobretryhistory_changelist")).content.decode()
    assert found and all(f">{row.id}<" in page and began < row.at < timezone.now() for row in found)
