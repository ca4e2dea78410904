"""Merge jobs of events: what they read and run, and what becomes of ranges and consumers when they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from brokerage_app.models import GlobalShare, Queue, QueueActivity, StorageEndpoint
from events_app.ends.merge_inputs import unreadable
from events_app.lifecycle.jobset_ranges import corrupt
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.models import File, Job, JobFile, JobOutputReport, JobParams, Task, TaskParams
from tasks_app.outcomes.end_hooks import EventJob
from tests.events_app.jobsets import Jobset, books_lines, check, ends, follower, merged, said_of, stores, works
from tests.events_app.ranges import DATASET, FINISHED, JOBSET, TASK

pytestmark = pytest.mark.django_db
S = EventStatus
Make = Callable[..., Jobset]


def zipped(jobset: Jobset, job: int, name: str, *firsts: int) -> JobFile:
    """A job has put its ranges with these first events into a zip file."""
    row = JobFile.objects.create(
        job_id=job,
        task_id=jobset.task.id,
        type="zipoutput",
        lfn=name,
        scope="transient",
        destination_se="11/1000",
        size=5,
        checksum="ad:ab",
        surl=f"file:/{name}",
    )
    Event.objects.filter(job_id=job, min_event__in=firsts).update(zip_row_id=row.id, objstore_id=11)
    return row


def two_zips(jobset: Jobset) -> int:
    """The only consumer does all, in two zip files. Returns the merge job."""
    works(jobset.first, 1, {1: FINISHED})
    zipped(jobset, jobset.first, "z1.zip", 1)
    works(jobset.first, 5, {11: FINISHED, 21: FINISHED})
    zipped(jobset, jobset.first, "z2.zip", 11, 21)
    assert ends(jobset.first)[:2] == ("merging", "es_merge")
    return follower(jobset.first)


def blocks(jobset: Jobset) -> list[tuple[int, int]]:
    return list(
        Event.objects.filter(file_id=jobset.file.id).order_by("min_event", "id").values_list("min_event", "status")
    )


def test_a_merge_job_reads_each_zip_file_once(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    read = JobFile.objects.filter(job_id=merge, type="zipinput").order_by("lfn")
    columns = ("lfn", "scope", "destination_se", "size", "checksum", "surl", "status")
    assert list(read.values_list(*columns)) == [
        (name, "transient", "11/1000", 5, "ad:ab", f"file:/{name}", "ready") for name in ("z1.zip", "z2.zip")
    ]
    merged(merge)
    assert set(Event.objects.values_list("status", "file_not_deleted")) == {(S.MERGED, "Y")}


def test_of_a_range_that_was_done_twice_the_later_job_counts(jobset_of: Make) -> None:
    jobset = jobset_of(10)
    works(jobset.first, 1, {1: FINISHED})
    done = {"dataset_id": DATASET, "file_id": jobset.file.id, "events_per_range": 10, "event_offset": JOBSET}
    Event.objects.create(
        task_id=TASK, process_id=1, min_event=1, max_event=10, job_id=0, attempt=3, status=S.DONE, objstore_id=7, **done
    )
    ends(jobset.first)
    (name,) = JobFile.objects.filter(job_id=follower(jobset.first), type="zipinput").values_list("lfn", flat=True)
    assert name == f"out.000001.root.{TASK}-{jobset.first}-{jobset.file.id}-1-3"


def test_what_the_task_runs_to_merge_stands_between_tags(jobset_of: Make) -> None:
    jobset = jobset_of()
    JobParams.objects.filter(pk=jobset.first).update(
        params="--in a <PANDA_ESMERGE_TRF>Merge_tf.py</PANDA_ESMERGE_TRF> <PANDA_ESMERGE_JOBP>--out b</PANDA_ESMERGE_JOBP>"
    )
    merge = two_zips(jobset)
    assert (Job.objects.get(pk=merge).transformation, JobParams.objects.get(pk=merge).params) == (
        "Merge_tf.py",
        "--out b",
    )


def test_merge_jobs_have_the_express_share_where_there_is_one(jobset_of: Make) -> None:
    GlobalShare.objects.create(name="Express", value=5)
    assert Job.objects.get(pk=two_zips(jobset_of())).gshare == "Express"


def test_a_merge_that_fails_throws_the_events_away_and_the_file_comes_back(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    assert merged(merge, "failed")[0] == "failed"
    assert {status for _, status in blocks(jobset)} == {S.DISCARDED}
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.attempt, jobset.file.failed_attempt) == ("ready", 1, 1)
    books_lines()
    assert said_of(jobset.first) == ("failed", "es_merge_failed", 300)
    check()


def test_a_merge_that_fails_leaves_the_events_for_the_next_where_the_task_says_so(jobset_of: Make) -> None:
    jobset = jobset_of(rules="ND=1")
    merge = two_zips(jobset)
    merged(merge, "failed")
    assert {status for _, status in blocks(jobset)} == {S.DONE}
    jobset.file.refresh_from_db()
    assert jobset.file.status == "ready"
    assert not JobOutputReport.objects.exists() and said_of(jobset.first)[0] == "merging"
    check()


@pytest.mark.parametrize("said", ["of the diag", "of the pilot"])
@pytest.mark.parametrize("code", [1103, 1145, 1171, 1175])
@pytest.mark.parametrize(("rules", "others"), [("", S.DISCARDED), ("ND=1", S.DONE)])
def test_ranges_of_a_zip_file_that_cannot_be_read_are_corrupted(
    jobset_of: Make, rules: str, others: EventStatus, code: int, said: str
) -> None:
    jobset = jobset_of(rules=rules)
    merge = two_zips(jobset)
    more: dict[str, Any] = {"pilot_error_code": code}
    if said == "of the diag":
        more["pilot_error_diag"] = "checksum verification failed: z2.zip is not what it was"
    else:
        JobFile.objects.filter(job_id=merge, lfn="z2.zip").update(status="corrupted")
    Job.objects.filter(pk=merge).update(**more)
    merged(merge, "failed")
    assert blocks(jobset) == [(1, others), (11, S.CORRUPTED)]


def not_copied(jobset: Jobset, merge: int) -> list[tuple[int, int]]:
    """A merge job cannot copy a file. The ranges of the jobset then."""
    diag = "failed to transfer files: z2.zip"
    Job.objects.filter(pk=merge).update(pilot_error_code=1099, pilot_error_diag=diag)
    merged(merge, "failed")
    return blocks(jobset)


def test_a_zip_file_that_three_merge_jobs_could_not_copy_cannot_be_read(
    jobset_of: Make, make_job: Callable[..., Job]
) -> None:
    jobset = jobset_of(rules="ND=1")
    merge = two_zips(jobset)
    for number, diag in ((1099, "z2.zip"), (1099, "z1.zip"), (1098, "z2.zip")):
        make_job(task_id=TASK, event_service=2, status="failed", pilot_error_code=number, pilot_error_diag=diag)
    assert not_copied(jobset, merge) == [(1, S.DONE), (11, S.DONE)], "it is the second one"


def test_a_zip_file_that_could_not_be_copied_for_the_third_time_is_redone(
    jobset_of: Make, make_job: Callable[..., Job]
) -> None:
    jobset = jobset_of(rules="ND=1")
    merge = two_zips(jobset)
    for _ in range(2):
        make_job(task_id=TASK, event_service=2, status="failed", pilot_error_code=1099, pilot_error_diag="z2.zip")
    assert not_copied(jobset, merge) == [(1, S.DONE), (11, S.CORRUPTED)]


@pytest.fixture
def storage() -> StorageEndpoint:
    return StorageEndpoint.objects.create(name="EVENTS", site_name="STORE", path="/events", number=12)


def test_what_lies_in_no_zip_file_is_read_at_its_storage_and_is_redone_when_it_is_not_there(
    jobset_of: Make, storage: StorageEndpoint
) -> None:
    jobset = jobset_of(20, rules="ND=1")
    works(jobset.first, 1, {1: FINISHED})
    Event.objects.filter(status=S.FINISHED).update(path_convention=7)
    works(jobset.first, 1, {11: FINISHED})
    ends(jobset.first)
    merge = follower(jobset.first)
    inputs = JobFile.objects.filter(job_id=merge, type="zipinput").order_by("lfn")
    first, second = (f"out.000001.root.{TASK}-{jobset.first}-{jobset.file.id}-{one}-3" for one in (1, 11))
    assert [(row.lfn, row.scope, row.destination_se) for row in inputs] == [
        (first, "transient", "12/7"),
        (second, "transient", "12"),
    ]
    assert {(row.surl or "").rpartition("/")[0].partition("/events/")[0] for row in inputs} == {"file://localhost"}
    assert (inputs[1].surl or "").endswith(second)
    inputs.filter(lfn=second).update(status="corrupted")
    merged(merge, "failed")
    assert blocks(jobset) == [(1, S.DONE), (11, S.CORRUPTED)]


@pytest.mark.parametrize(("rules", "others"), [("", S.DISCARDED), ("ND=1", S.DONE)])
def test_outputs_that_lie_nowhere_are_not_merged_and_the_job_says_why(
    jobset_of: Make, rules: str, others: EventStatus
) -> None:
    jobset = jobset_of(20, rules=rules)
    works(jobset.first, 1, {1: FINISHED})
    works(jobset.first, 1, {11: FINISHED._replace(objstore_id=None)})
    assert ends(jobset.first) == ("failed", None, 124)
    assert Job.objects.get(pk=jobset.first).task_buffer_error_diag == (
        "nothing can be merged: 1 range was reported as finished without a file and without a storage"
    )
    assert blocks(jobset) == [(1, others), (11, S.CORRUPTED)]
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.failed_attempt) == ("ready", 1)
    check()


def test_a_merge_job_that_has_not_read_all_that_is_done_has_failed(jobset_of: Make) -> None:
    jobset = jobset_of(rules="ND=1")
    merge = two_zips(jobset)
    JobFile.objects.filter(job_id=merge, lfn="z2.zip").delete()
    assert merged(merge) == ("failed", None, 124)
    assert "2 ranges that are done were none of its inputs" in (Job.objects.get(pk=merge).task_buffer_error_diag or "")
    assert {status for _, status in blocks(jobset)} == {S.DONE}
    jobset.file.refresh_from_db()
    assert jobset.file.status == "ready"
    check()


@pytest.mark.parametrize(("before", "failed", "after"), [(None, 1, 6), (3, 0, 3), (9, 2, 7)])
def test_a_file_that_is_merged_may_fail_five_times_more(
    jobset_of: Make, before: int | None, failed: int, after: int
) -> None:
    jobset = jobset_of()
    File.objects.filter(pk=jobset.file.id).update(max_failure=before, failed_attempt=failed)
    two_zips(jobset)
    jobset.file.refresh_from_db()
    assert jobset.file.max_failure == after


@pytest.mark.parametrize(
    ("catchall", "bound", "where"),
    [
        ("", None, "NEAR"),
        ("localEsMerge", None, "SITE_A"),
        ("localEsMergeNC", None, "SITE_A"),
        ("", "SITE_A", "SITE_A"),
    ],
)
def test_a_merge_job_runs_near_its_inputs_unless_its_queue_keeps_it(
    jobset_of: Make, storage: StorageEndpoint, catchall: str, bound: str | None, where: str
) -> None:
    jobset = jobset_of(10)
    TaskParams.objects.update_or_create(pk=jobset.task.id, defaults={"params": {}})
    Task.objects.filter(pk=jobset.task.id).update(site=bound)
    Queue.objects.create(name="SITE_A", site_name="SITE_A", catchall=catchall, storage=None)
    Queue.objects.create(name="NEAR", site_name="STORE", storage=storage)
    QueueActivity.objects.create(site="NEAR", pilots_3h=5)
    works(jobset.first, 1, {1: FINISHED})
    ends(jobset.first)
    merge = Job.objects.get(pk=follower(jobset.first))
    assert merge.site == where
    written = dict(JobFile.objects.filter(job_id=merge.id).values_list("type", "destination_se"))
    expected = "EVENTS" if where == "NEAR" else "local"
    assert (written["output"], written["log"]) == (expected, expected)


def test_another_error_corrupts_nothing(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    Job.objects.filter(pk=merge).update(pilot_error_code=1305, pilot_error_diag="z2.zip")
    merged(merge, "failed")
    assert {status for _, status in blocks(jobset)} == {S.DISCARDED}


def test_the_kill_of_a_merge_job_ends_the_consumers_that_wait_for_it(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    assert ends(merge, "cancelled", component="taskbuffer", code=100)[0] == "cancelled"
    books_lines()
    assert said_of(jobset.first) == ("failed", "es_merge_failed", 300)
    jobset.file.refresh_from_db()
    assert (jobset.file.status, jobset.file.failed_attempt) == ("ready", 0)
    check()


def test_the_kill_of_a_consumer_that_waits_for_its_merge_is_that_of_the_merge(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    assert ends(jobset.first, "cancelled", component="taskbuffer", code=100)[0] == "cancelled"
    assert {status for _, status in blocks(jobset)} == {S.DISCARDED}
    books_lines()
    assert said_of(merge) == ("cancelled", "es_killed", 120)
    jobset.file.refresh_from_db()
    assert jobset.file.status == "ready"
    check()


def test_a_consumer_whose_merge_is_over_is_not_killed(jobset_of: Make) -> None:
    jobset = jobset_of()
    merged(two_zips(jobset))
    assert ends(jobset.first, "cancelled", component="taskbuffer", code=150)[0] == "merging"
    books_lines()
    assert said_of(jobset.first)[0] == "finished"


def test_a_new_jobset_is_merged_with_what_an_older_one_has_done(jobset_of: Make) -> None:
    jobset = jobset_of(20, rules="ND=1")
    Event.objects.filter(min_event=1).update(max_event=10)
    Event.objects.create(
        task_id=TASK,
        dataset_id=DATASET,
        file_id=jobset.file.id,
        process_id=11,
        min_event=11,
        max_event=20,
        events_per_range=10,
        job_id=(older := jobset.another(jobset_id=800, status="merging", sub_status="es_retry")),
        event_offset=800,
        attempt=3,
        status=S.DONE,
        objstore_id=12,
    )
    works(jobset.first, 2, {1: FINISHED})
    assert ends(jobset.first)[:2] == ("merging", "es_merge")
    merged(follower(jobset.first))
    books_lines()
    assert [said_of(job)[0] for job in (jobset.first, older)] == ["finished", "finished"]


def test_of_a_block_only_the_ranges_whose_outputs_cannot_be_read_are_processed_again(jobset_of: Make) -> None:
    jobset = jobset_of(35)
    works(jobset.first, 4, dict.fromkeys((1, 11, 21, 31), FINISHED))
    ends(jobset.first)
    assert blocks(jobset) == [(1, S.DONE)], "one block, whose outputs lie at a storage on their own"
    merge = follower(jobset.first)
    bad = JobFile.objects.get(job_id=merge, type="zipinput", lfn__contains=f"-{jobset.file.id}-21-")
    Job.objects.filter(pk=merge).update(pilot_error_code=1103, pilot_error_diag=f"{bad.lfn} is not there")
    with transaction.atomic(), hot_cursor() as cursor:
        job = EventJob(merge, TASK, "running", 2, JOBSET, 1, 1, "", "SITE_A", "", 1103, f"{bad.lfn} is not there", True)
        zips, loose = unreadable(cursor, job, [jobset.file.id])
        assert (zips, loose) == ([], [bad.lfn])
        assert corrupt(cursor, TASK, [jobset.file.id], zips, loose) == 1
    assert blocks(jobset) == [(1, S.DONE), (11, S.DONE), (21, S.CORRUPTED), (31, S.DONE)]
    assert [(row.min_event, row.max_event) for row in Event.objects.order_by("min_event")][-1] == (31, 35)


def test_a_merge_job_and_its_output_have_the_events_that_were_merged(jobset_of: Make) -> None:
    jobset = jobset_of()
    merge = two_zips(jobset)
    now = timezone.now()
    Job.objects.filter(pk=merge).update(status="holding", fence=1, heartbeat_at=now, start_time=now)
    says = tuple((output, {key: said[key] for key in said if key != "nevents"}) for output, said in stores(merge))
    ends(merge, stored=says)
    assert Job.objects.get(pk=merge).events == 25
    kinds = dict(File.objects.filter(job_id=merge, type__in=["output", "log"]).values_list("type", "events"))
    assert kinds["output"] == 25 and kinds.get("log") is None
    jobset.outputs.refresh_from_db()
    assert (jobset.outputs.files_finished, jobset.outputs.events_used) == (1, 25)
    check()
