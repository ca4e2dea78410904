"""Columns of tasks that people and other systems read: coarse status, mark for metadata, failures, expected end, rescues."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from jedisite.web.columns import Batch
from tasks_app.agents import adder
from tasks_app.agents.watchdogs import forecasts, stale_locks
from tasks_app.lifecycle import claims
from tasks_app.lists.file_columns import FILES
from tasks_app.models import File, OutputTemplate
from tasks_app.submission import command_queue
from tests.flow.driving import add_dataset, add_files, dataset, parameters, reads, settle, submit, task
from tests.flow.pilot import Pilot, drive
from tests.flow.test_watchdogs import made_task, update

pytestmark = pytest.mark.usefixtures("books")
HOUR = timedelta(hours=1)


def test_the_coarse_status_and_the_mark_for_metadata_follow_the_state() -> None:
    made = made_task(2)
    assert (task(made).super_status, task(made).ami_flag) == ("running", None)
    drive(Pilot())
    assert (task(made).status, task(made).super_status, task(made).ami_flag) == ("done", "done", "READY")
    add_files(dataset(made).name, [7])
    command_queue.give_command(made, "incexec", by="ada")
    settle()
    assert (task(made).super_status, task(made).ami_flag) == ("running", None), "its outputs are not complete any more"
    drive(Pilot())
    assert task(made).ami_flag == "READY"


def test_a_task_at_work_says_how_often_its_jobs_fail_and_when_it_will_end() -> None:
    made = made_task(20)
    start = task(made).start_time
    assert start is not None
    assert forecasts.run(now=start + HOUR).items == 0, "no job has ended"
    Pilot().work(8)
    Pilot(lambda job: "failed").work(2)
    adder.run()
    forecasts.run(now=start + HOUR)
    seen = task(made)
    assert (seen.failure_rate, seen.ttc_prediction_date) == (20, start + HOUR)
    # 8 files in an hour, 12 are left.
    assert seen.ttc_predicted is not None and abs(seen.ttc_predicted - start - 2.5 * HOUR) < timedelta(minutes=1)
    # Nothing has ended for six hours: nobody can tell.
    forecasts.run(now=timezone.now() + 7 * HOUR)
    assert (task(made).ttc_predicted, task(made).failure_rate) == (None, 20)
    forecasts.run(now=start + HOUR)
    drive(Pilot())
    assert (task(made).status, task(made).ttc_predicted, task(made).failure_rate) == ("done", None, 9)


def test_the_page_of_a_task_says_when_it_will_end_and_that_this_is_too_late(client: Client) -> None:
    made = made_task(2)
    soon = timezone.now().replace(microsecond=0) + HOUR
    update("jedi_tasks", "jeditaskid", made, ttcpredicted=soon, ttcpredictiondate=soon - HOUR, failurerate=7)
    update("jedi_tasks", "jeditaskid", made, ttcrequested=soon - HOUR / 2)
    Pilot(lambda job: "failed").work(1)
    adder.run()
    client.force_login(User.objects.create_superuser("grace", password="compiler-of-1952"))
    text = client.get(f"/tasks/{made}/").content.decode()
    assert "Expected end" in text and "as of" in text and "will be missed at this rate" in text
    assert "<dd>100 % of the ended ones</dd>" in text, "as the jobs are now, and not when the column was written"
    past = timezone.now() - HOUR
    update("jedi_tasks", "jeditaskid", made, ttcpredicted=past, ttcpredictiondate=past - HOUR, ttcrequested=past)
    text = client.get(f"/tasks/{made}/").content.decode()
    assert (
        "not known now" in text and "it was expected" in text and "has passed" in text and "will be missed" not in text
    )
    drive(Pilot())
    assert "Expected end" not in client.get(f"/tasks/{made}/").content.decode()


def test_a_task_that_is_freed_from_a_dead_process_keeps_the_time_of_that() -> None:
    made = made_task(2)
    ((_, _fence),) = claims.claim_tasks("nobody-1", ["running"], 1, even_waiting=True)
    before = timezone.now()
    stale_locks.run(lease=timedelta())
    rescued = task(made).rescue_time
    assert rescued is not None and rescued >= before - timedelta(seconds=1)
    drive(Pilot())


def test_outputs_are_not_numbered_beyond_their_highest_number() -> None:
    made = made_task(1)
    drive(Pilot())
    assert set(OutputTemplate.objects.filter(task_id=made).values_list("max_serial", flat=True)) == {9_999_999}
    add_files(dataset(made).name, [7, 8])
    OutputTemplate.objects.filter(task_id=made).update(max_serial=2)
    command_queue.give_command(made, "incexec", by="ada")
    settle()
    drive(Pilot())
    assert task(made).status == "broken"
    assert "no numbers are left for the files of" in (task(made).error_dialog or "")


def test_the_list_of_files_says_how_far_the_job_of_each_is() -> None:
    made = made_task(2)
    pilot = Pilot()
    (job,) = pilot.fetch()
    pilot.start(job)
    rows = list(File.objects.filter(task_id=made, type="input").values("id", "status", "job_id"))
    (found,) = (part for part in FILES.parts if isinstance(part, Batch) and part.columns[0].name == "proc_status")
    said = {row["proc_status"] for row in found.compute(rows).values()}
    assert said == {"running", "queued"}
    pilot.end(job)
    drive(pilot)
    again = list(File.objects.filter(task_id=made, type="input").values("id", "status", "job_id"))
    assert {row["proc_status"] for row in found.compute(again).values()} == {"finished"}


def test_the_system_that_a_task_was_submitted_from_stands_in_the_list(client: Client) -> None:
    add_dataset("lab.os", 1)
    made = submit(parameters("lab.os", reads("lab.os"), osInfo="Linux-6.1-x86_64"))
    drive(Pilot())
    assert task(made).term_condition == "Linux-6.1-x86_64"
    client.force_login(User.objects.create_superuser("grace", password="compiler-of-1952"))
    assert "Linux-6.1-x86_64" in client.get("/tasks/?columns=id,term_condition").content.decode()
