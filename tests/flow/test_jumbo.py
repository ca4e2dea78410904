"""Tasks with jumbo jobs: they and consumers share the ranges of a task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from brokerage_app.models import Queue, StorageEndpoint, ThrottleRecord
from events_app.agents import jumbo_jobs
from events_app.dispatch.handing_ranges import hand_out
from events_app.dispatch.range_accounts import account
from events_app.jumbo.jumbo_turns import why_none_of
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from tasks_app.agents import adder, feeder, job_generator, post_processor, refiner
from tasks_app.models import Dataset, File, Job, JobFile, JobParams, Task, TaskStatusLog
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, status, submit, task, wake
from tests.flow.pilot import Pilot, proof
from tests.flow.test_throttle import configure, queue_users, work_queue
from tests.flow.threads import together

pytestmark = pytest.mark.usefixtures("books")
JUMBO, WAITING = "JUMBO", "WAITING_CO_JUMBO"


@pytest.fixture(autouse=True)
def queues(books: None) -> None:
    Queue.objects.update(job_seed="all")
    add_queue(JUMBO, catchall="useJumboJobs", job_seed="es")


def with_jumbo(files: int = 1, **more: Any) -> int:
    add_dataset("lab.in", files)
    given = {"nFilesPerJob": 1, "nEventsPerWorker": 1, "nEventsPerInputFile": 20, "nJumboJobs": 1, **more}
    made = submit(parameters("lab.t", reads("lab.in"), **given))
    refiner.run()
    feeder.run()
    assert status(made) == "ready", task(made).error_dialog
    return made


def turn() -> None:
    wake()
    for agent in (job_generator, jumbo_jobs, adder, jumbo_jobs, adder):
        agent.run()


def kinds(task_id: int) -> list[tuple[int | None, str, str]]:
    return [(job.event_service, job.site, job.status) for job in jobs(task_id)]


def take(job: dict[str, Any], wanted: int) -> list[str]:
    return [one["eventRangeID"] for one in hand_out(job["PandaID"], wanted, proof(job))]


def finish(ids: Sequence[str], job: dict[str, Any], word: str = "finished") -> None:
    store, _ = StorageEndpoint.objects.get_or_create(name="EVENTS", site_name="ELSEWHERE", path="/events")
    account([{"eventRangeID": one, "eventStatus": word, "objstoreID": store.number} for one in ids], proof(job))


def start(site: str, number: int = 1) -> list[dict[str, Any]]:
    pilot = Pilot(site=site)
    found = pilot.fetch(number)
    for job in found:
        pilot.start(job)
    return found


def end(site: str, *ended: dict[str, Any], outcome: str = "finished") -> None:
    for job in ended:
        Pilot(site=site).end(job, outcome)
    turn()


def states(task_id: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for first, last, length, state in Event.objects.filter(task_id=task_id).values_list(
        "min_event", "max_event", "events_per_range", "status"
    ):
        word = EventStatus(state).word
        found[word] = found.get(word, 0) + (last - first) // length + 1
    return found


def to_the_end(task_id: int) -> None:
    """Merge jobs run, and the task ends."""
    for site in (JUMBO, "SITE_A"):
        for job in start(site, 50):
            end(site, job)
    for _ in range(3):
        wake()
        adder.run()
        post_processor.run()


def test_a_jumbo_job_is_made_beside_consumers_at_a_queue_of_its_own() -> None:
    made = with_jumbo(2)
    assert task(made).use_jumbo == "W"
    turn()
    assert kinds(made) == [(5, "SITE_A", "activated"), (5, "SITE_A", "activated"), (4, JUMBO, "activated")]
    jumbo = jobs(made)[-1]
    assert task(made).use_jumbo == "R"
    assert not JobFile.objects.filter(job_id=jumbo.id, type__in=("input", "output")).exists()
    assert not {job.jobset_id for job in jobs(made)[:2]} & {jumbo.jobset_id, None}
    assert "jumbo jobs: jumbo jobs were made; one was made" in {
        log.reason for log in TaskStatusLog.objects.filter(task_id=made)
    }
    turn()
    assert len(jobs(made)) == 3, "one is enough"


def test_consumers_and_jumbo_jobs_take_ranges_of_one_task_at_once_and_the_jumbo_job_dies() -> None:
    made = with_jumbo(2)
    turn()
    (jumbo,), (first, second) = start(JUMBO), start("SITE_A", 2)

    def in_turns(job: dict[str, Any], wanted: int, most: int) -> list[str]:
        found: list[str] = []
        while len(found) < most and (some := take(job, wanted)):
            found += some
        return found

    theirs, ours, others = together(
        lambda: in_turns(jumbo, 3, 15), lambda: in_turns(first, 2, 8), lambda: in_turns(second, 2, 8)
    )
    places = [tuple(one.split("-")[2:4]) for one in (*theirs, *ours, *others)]
    assert len(places) == len(set(places)), "no range is taken twice"
    finish(theirs[:5], jumbo)
    finish(ours, first)
    finish(others, second)
    end(JUMBO, jumbo, outcome="failed")
    died = Job.objects.get(pk=jumbo["PandaID"])
    assert died.status == "finished", "five of its ranges are processed"
    assert Event.objects.filter(task_id=made, job_id=died.id).exclude(status=EventStatus.FINISHED).count() == 0
    again = [job for job in jobs(made) if job.event_service == 4 and job.status == "activated"]
    assert len(again) == 1 and task(made).use_jumbo == "R"
    for job in (first, second):
        while some := take(job, 10):
            finish(some, job)
    end("SITE_A", first, second)
    assert states(made) == {"done": 40}
    assert [job.event_service for job in jobs(made) if job.status == "activated"].count(2) == 2
    to_the_end(made)
    assert status(made) == "done", task(made).error_dialog
    assert states(made) == {"merged": 40}


def test_a_jumbo_job_is_told_where_the_file_of_a_range_lies() -> None:
    made = with_jumbo(1)
    turn()
    (read,) = JobFile.objects.filter(job_id=jobs(made)[0].id, type="input")
    JobFile.objects.filter(pk=read.pk).update(surl="file://localhost/store/one", checksum="ad:0000abcd")
    (jumbo,), (consumer,) = start(JUMBO), start("SITE_A")
    (one,) = hand_out(jumbo["PandaID"], 1, proof(jumbo))
    assert (one["LFN"], one["PFN"], one["fsize"], one["checksum"]) == (
        read.lfn,
        "file://localhost/store/one",
        read.size,
        "ad:0000abcd",
    )
    (other,) = hand_out(consumer["PandaID"], 1, proof(consumer))
    assert "PFN" not in other, "it is an input of the job"


def test_a_jobset_whose_ranges_jumbo_jobs_have_done_is_merged_without_its_consumer() -> None:
    made = with_jumbo(1)
    turn()
    (jumbo,) = start(JUMBO)
    finish(take(jumbo, 50), jumbo)
    turn()
    consumer = jobs(made)[0]
    assert (consumer.status, consumer.sub_status) == ("closed", "es_merge")
    assert states(made) == {"done": 20}
    end(JUMBO, jumbo)
    to_the_end(made)
    assert status(made) == "done", task(made).error_dialog
    assert states(made) == {"merged": 20}


def test_where_only_jumbo_jobs_have_a_place_consumers_wait_until_their_ranges_are_done() -> None:
    Queue.objects.filter(pk="SITE_A").update(status="offline")
    made = with_jumbo(2)
    turn()
    assert kinds(made) == [(5, WAITING, "waiting"), (5, WAITING, "waiting"), (4, JUMBO, "activated")]
    inputs = Dataset.objects.get(task_id=made, type="input")
    assert (inputs.files_waiting, task(made).use_jumbo) == (2, "R")
    assert File.objects.filter(dataset_id=inputs.id, is_waiting="Y").count() == 2
    (jumbo,) = start(JUMBO)
    finish(take(jumbo, 20), jumbo)
    turn()
    inputs.refresh_from_db()
    assert inputs.files_waiting == 1
    (merge,) = Job.objects.filter(task_id=made, event_service=2)
    assert (merge.site, merge.status) == (JUMBO, "activated"), "the merge job goes where the ranges were processed"
    (first, _) = File.objects.filter(dataset_id=inputs.id).order_by("id").values_list("id", flat=True)
    assert JobParams.objects.get(pk=merge.id).params.startswith(f"--files {first} "), "a zip file has ranges of others"
    Queue.objects.filter(pk="SITE_A").update(status="online")
    turn()
    assert (5, "SITE_A", "activated") in kinds(made), "a queue has room for the other"
    inputs.refresh_from_db()
    assert inputs.files_waiting == 0 and not File.objects.filter(dataset_id=inputs.id, is_waiting="Y").exists()
    finish(take(jumbo, 20), jumbo)
    end(JUMBO, jumbo)
    to_the_end(made)
    assert status(made) == "done", task(made).error_dialog
    assert states(made) == {"merged": 40}


def test_a_consumer_that_ends_before_a_jumbo_job_leaves_its_file_to_one_that_waits() -> None:
    made = with_jumbo(1)
    turn()
    (jumbo,), (consumer,) = start(JUMBO), start("SITE_A")
    theirs = take(jumbo, 12)
    ours = take(consumer, 20)
    assert (len(theirs), len(ours)) == (12, 8)
    finish(ours, consumer)
    end("SITE_A", consumer)
    assert Job.objects.get(pk=consumer["PandaID"]).status == "merging"
    assert (5, WAITING, "waiting") in kinds(made)
    finish(theirs, jumbo)
    end(JUMBO, jumbo)
    to_the_end(made)
    assert status(made) == "done", task(made).error_dialog
    assert states(made) == {"merged": 20}


def test_a_jumbo_job_that_does_nothing_fails_and_its_queue_rests() -> None:
    made = with_jumbo(1)
    turn()
    (jumbo,) = start(JUMBO)
    take(jumbo, 5)
    end(JUMBO, jumbo, outcome="failed")
    died = Job.objects.get(pk=jumbo["PandaID"])
    assert (died.status, task(made).use_jumbo) == ("failed", "L")
    assert states(made) == {"ready": 20}
    assert [job.event_service for job in jobs(made)] == [5, 4]


def test_a_queue_gets_as_many_jumbo_jobs_as_the_task_allows() -> None:
    add_queue("JUMBO_B", catchall="useJumboJobs,minEventsForJumbo=41", job_seed="es")
    made = with_jumbo(2, nJumboJobs=3, maxJumboPerSite=2)
    turn()
    assert kinds(made)[2:] == [(4, JUMBO, "activated")] * 2, "too few events wait for the other queue"


def test_jumbo_jobs_that_have_not_begun_end_when_they_are_switched_off() -> None:
    made = with_jumbo(1)
    turn()
    type(task(made)).objects.filter(pk=made).update(use_jumbo="D")
    turn()
    assert (4, JUMBO, "closed") in kinds(made)


def test_jumbo_jobs_that_have_not_begun_end_when_all_files_of_their_task_are_done() -> None:
    """Also while the task waits for more input, and its jobs are not ended with it."""
    made = with_jumbo(1)
    Dataset.objects.filter(task_id=made, type="input").update(state="mutable")
    turn()
    (consumer,) = start("SITE_A")
    finish(take(consumer, 20), consumer)
    end("SITE_A", consumer)
    assert (4, JUMBO, "activated") in kinds(made), "its file is still to be merged"
    for job in start("SITE_A"):
        end("SITE_A", job)
    wake()
    post_processor.run()
    jumbo_jobs.run()
    assert status(made) == "defined"
    (jumbo,) = (job for job in jobs(made) if job.event_service == 4)
    assert (jumbo.status, jumbo.sub_status) == ("closed", "taskdone")
    assert jumbo.task_buffer_error_diag == "all files of its task are done"


def test_why_a_task_gets_no_jumbo_job_is_kept_and_told_until_it_gets_one(client: Client) -> None:
    Queue.objects.filter(pk=JUMBO).update(status="offline")
    made = with_jumbo()
    turn()
    assert not Job.objects.filter(task_id=made, event_service=4).exists()
    said = why_none_of(made)
    assert said.startswith("no queue takes its jumbo jobs: All 2 sites were skipped: ") and "site offline" in said
    logs = TaskStatusLog.objects.filter(task_id=made, by="jumbo_jobs")
    assert logs.count() == 1
    client.force_login(User.objects.create_superuser("root"))
    assert said in unescape(client.get(f"/tasks/{made}/events/").content.decode())
    history = client.get(f"/api/v2/tasks/{made}/log/").json()
    assert any(said in (row["reason"] or "") for row in history["results"])
    turn()
    assert logs.count() == 1, "what is as before is not written again"
    Queue.objects.filter(pk=JUMBO).update(status="online")
    turn()
    assert Job.objects.filter(task_id=made, event_service=4).exists() and why_none_of(made) == ""


def test_a_task_that_is_throttled_gets_consumers_that_wait_for_its_jumbo_jobs() -> None:
    queue = work_queue()
    configure("NQUEUELIMIT_MC", 5)
    queue_users(queue, 6)
    made = with_jumbo(2, prodSourceLabel="managed", taskType="prod")
    Task.objects.filter(pk=made).update(work_queue=queue, resource_type="SCORE", vo="lab")
    turn()
    assert kinds(made) == [(5, WAITING, "waiting"), (5, WAITING, "waiting"), (4, JUMBO, "activated")]
    turn()
    assert kinds(made)[:2] == [(5, WAITING, "waiting")] * 2, "no queue gets them while the task is throttled"
    assert (task(made).error_dialog or "").startswith("Throttled: ")
    ThrottleRecord.objects.update(at=timezone.now() - timedelta(minutes=6))  # no other task of the group is held back
    turn()
    assert (5, "SITE_A", "activated") in kinds(made)
    Job.objects.filter(pk__gte=90_000_000).delete()  # they were of no task
