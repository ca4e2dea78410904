"""Retry rules end to end: a pilot reports an error, and files and task change as the rule says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder
from tasks_app.dispatch.reports import update_job
from tasks_app.models import ErrorClass, FileRetry, RetryNote, RetryRule, TaskChangeDue, TaskStatusLog
from tasks_app.retries import apply_rules
from tasks_app.submission import command_queue
from tests.flow.driving import add_dataset, dataset, files, jobs, parameters, reads, settle, status, submit, task
from tests.flow.pilot import Job, Pilot, drive, inputs_of, report

pytestmark = pytest.mark.usefixtures("books")
MEMORY = {"pilot_error_code": 1235, "pilot_error_diag": "The payload used 1500 MB, its limit is 1000 MB"}


@pytest.fixture(autouse=True)
def no_rules(tables: None) -> None:
    """Only the rules of the test."""
    RetryRule.objects.all().delete()
    ErrorClass.objects.all().delete()


def rule(code: int, action: str, parameters: str | None = None, source: str = "pilot", **more: Any) -> RetryRule:
    return RetryRule.objects.create(error_source=source, error_code=code, action=action, parameters=parameters, **more)


def running(count: int = 4, **more: Any) -> int:
    add_dataset("lab.in", count, events=100)
    made = submit(parameters("lab.t", reads("lab.in"), **{"nFilesPerJob": 1, "maxAttempt": 4, **more}))
    settle()
    return made


def fail(job: Job, errors: Mapping[str, Any], **measures: Any) -> None:
    update_job(report(job, "starting"))
    update_job(report(job, "running"))
    update_job(report(job, "failed", errors=dict(errors), measures=measures))


def fail_all(errors: Mapping[str, Any], chosen: Callable[[Job], bool] = lambda job: True, **measures: Any) -> list[Job]:
    """Fetch what is queued; the chosen jobs fail. Returns the others."""
    pilot = Pilot()
    found = pilot.fetch(100)
    for job in found:
        if chosen(job):
            fail(job, errors, **measures)
    return [job for job in found if not chosen(job)]


def notes(job: Job) -> list[tuple[str, bool]]:
    return list(RetryNote.objects.filter(job_id=job["PandaID"]).order_by("id").values_list("code", "applied"))


def test_an_error_that_is_not_worth_another_attempt_gets_none() -> None:
    rule(1149, "no_retry")
    made = running(2)
    first, second = Pilot().fetch(2)
    fail(first, {"pilot_error_code": 1149, "pilot_error_diag": "no transform"})
    adder.run()
    (file,) = [f for f in files(made) if f.lfn in inputs_of(first)]
    assert (file.status, file.attempt, file.max_attempt) == ("ready", 1, 1)
    row = dataset(made)
    assert (row.files_used, row.files_failed, FileRetry.objects.count()) == (2, 1, 0)
    assert notes(first) == [("retry_none", True)]
    fail(second, {"pilot_error_code": 1305})
    adder.run()
    assert (dataset(made).files_used, FileRetry.objects.count()) == (1, 1)
    drive(Pilot())
    assert status(made) == "finished"


def test_a_job_that_the_site_has_ended_is_tried_again_although_its_file_has_one_attempt_only() -> None:
    made = running(2, maxAttempt=1)
    first, second = Pilot().fetch(2)
    fail(first, {"pilot_error_code": 1201, "pilot_error_diag": "The pilot was told to end (SIGTERM)"})
    fail(second, {"pilot_error_code": 1305})
    adder.run()
    assert notes(first) == [("retry_site_ended", True)] and notes(second) == []
    assert sorted((f.attempt, f.max_attempt) for f in files(made)) == [(1, 1), (1, 2)]
    assert (dataset(made).files_used, dataset(made).files_failed) == (1, 1)
    drive(Pilot())
    assert (status(made), dataset(made).files_finished) == ("finished", 1)


def test_a_code_that_the_pilot_calls_recoverable_is_the_same_error() -> None:
    rule(1149, "no_retry")
    made = running(1)
    fail_all({"pilot_error_code": -1149})
    drive(Pilot())
    assert status(made) == "failed"
    assert len(jobs(made)) == 1


def test_an_error_that_is_tried_twice_at_most_gets_two_attempts() -> None:
    rule(1171, "limit_retry", "maxAttempt=2")
    made = running(1, maxAttempt=5)
    for _ in range(3):
        fail_all({"pilot_error_code": 1171})
        settle()
    assert status(made) == "failed"
    assert len(jobs(made)) == 2
    assert files(made)[0].max_attempt == 2


def test_a_limit_below_the_attempts_that_were_made_ends_them_at_what_they_are() -> None:
    rule(1171, "limit_retry", "maxAttempt=1")
    made = running(1, maxAttempt=5)
    fail_all({"pilot_error_code": 1305})
    settle()
    fail_all({"pilot_error_code": 1171})
    settle()
    assert (files(made)[0].attempt, files(made)[0].max_attempt, status(made)) == (2, 2, "failed")


def test_a_job_that_ran_out_of_memory_raises_that_of_its_files_only() -> None:
    rule(1235, "increase_memory")
    made = running(8)
    fail_all(MEMORY, lambda job: "lab.in.00003" in job["inFiles"])
    adder.run()
    assert {f.lfn: f.ram_count for f in files(made) if f.ram_count} == {"lab.in.00003": 2000}
    assert task(made).ram_count == 1000
    (note,) = RetryNote.objects.all()
    assert (note.code, note.task_id) == ("retry_more_memory", made)
    assert note.detail == "the job had 1000 MB, its inputs get 2000 MB"


def test_files_that_may_fail_as_often_as_they_are_tried_have_no_limit_after_a_rule_and_a_retry() -> None:
    rule(1235, "increase_memory")
    made = running(1, maxAttempt=2)
    fail_all(MEMORY)
    settle()
    assert (files(made)[0].ram_count, files(made)[0].max_failure) == (2000, None)
    fail_all({"pilot_error_code": 1305})
    settle()
    assert status(made) == "failed"
    command_queue.give_command(made, "retry", by="ada")
    settle()
    assert (files(made)[0].max_attempt, files(made)[0].max_failure) == (4, None)
    drive(Pilot())
    assert status(made) == "done"


def test_measured_memory_decides_the_step() -> None:
    rule(1235, "increase_memory")
    made = running(8)
    fail_all(MEMORY, lambda job: "lab.in.00003" in job["inFiles"], max_pss_kb=2_100 * 1024)
    adder.run()
    assert max(f.ram_count or 0 for f in files(made)) == 3000


def test_when_many_files_need_more_memory_the_whole_task_gets_it() -> None:
    rule(1235, "increase_memory")
    made = running(10)
    wanted = {f"lab.in.{n:05d}" for n in range(3)}
    fail_all(MEMORY, lambda job: job["inFiles"] in wanted)
    adder.run()
    changed = task(made)
    assert (changed.ram_count, changed.resource_type) == (2000, "SCORE")
    assert not TaskChangeDue.objects.exists()
    last = TaskStatusLog.objects.filter(task_id=made).order_by("-id")[0]
    assert (last.status, last.by) == (changed.status, "adder")
    assert last.reason == "3 of 10 input files needed more than 1000 MB, so the whole task gets 2000 MB"


@pytest.mark.parametrize("more", [{}, {"respectLB": True}], ids=["as they come", "in an order of their own"])
def test_the_whole_task_counts_files_of_earlier_batches(more: dict[str, Any]) -> None:
    rule(1235, "increase_memory")
    made = running(10, **more)
    left = Pilot().fetch(3)
    for expected, job in zip((1000, 1000, 2000), left, strict=True):
        fail(job, MEMORY)
        adder.run()
        assert task(made).ram_count == expected


def test_a_change_of_the_task_survives_an_adder_that_is_killed_before_it() -> None:
    rule(1235, "increase_memory")
    made = running(2)
    left = Pilot().fetch(1)
    fail(left[0], MEMORY)
    adder.book_reports()
    assert (task(made).ram_count, TaskChangeDue.objects.count()) == (1000, 1)
    adder.run()
    assert (task(made).ram_count, TaskChangeDue.objects.count()) == (2000, 0)


def test_a_job_that_ran_too_long_raises_the_cpu_time_of_the_task() -> None:
    rule(1213, "increase_cputime")
    made = running(2, cpuTime=1, baseWalltime=0)
    first, _ = Pilot().fetch(2)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    update_job(report(first, "running", start_time=began))
    update_job(report(first, "failed", errors={"pilot_error_code": 1213}, end_time=began + timedelta(hours=2)))
    adder.run()
    # 7 200 s × 10 HS06 × 1.1 ÷ 0.9 efficiency ÷ 100 events × 1.5
    assert (task(made).cpu_time, task(made).cpu_time_unit) == (1320, "HS06sPerEvent")
    assert notes(first) == [("retry_more_cpu_time", True)]


def test_a_job_that_ran_too_long_when_others_ended_well_has_the_task_measured_anew() -> None:
    rule(1213, "increase_cputime")
    made = running(2, cpuTime=1, walltimeUnit="kSI2kseconds")
    pilot = Pilot()
    first, second = pilot.fetch(2)
    pilot.start(first)
    pilot.end(first, "finished")
    adder.run()
    assert task(made).walltime_unit == "kSI2kseconds"
    fail(second, {"pilot_error_code": 1213})
    adder.run()
    assert task(made).walltime_unit is None


def test_input_is_reduced_step_by_step_and_the_first_values_are_kept() -> None:
    rule(1104, "reduce_input", "steps=1/2/3")
    made = running(8, nFilesPerJob=None, nMaxFilesPerJob=8)
    sizes = []
    for _ in range(3):
        found = Pilot().fetch(100)
        sizes.append({len(inputs_of(job)) for job in found})
        for job in found:
            fail(job, {"pilot_error_code": 1104})
        settle()
    assert sizes == [{8}, {4}, {2}]
    assert "MF=1" in (task(made).split_rule or "")
    assert "RM=MF:8" in (task(made).split_rule or "")


def test_an_error_of_the_system_does_not_count_against_the_limit_on_failures() -> None:
    ErrorClass.objects.create(error_source="pilot", error_code=1318, name="system")
    made = running(1, maxFailure=1, maxAttempt=5)
    fail_all({"pilot_error_code": 1318})
    adder.run()
    (file,) = files(made)
    assert (file.failed_attempt, file.max_failure) == (1, 2)
    assert (dataset(made).files_failed, FileRetry.objects.count()) == (0, 1)
    drive(Pilot())
    assert status(made) == "done"


def test_a_rule_that_is_not_active_is_only_noted() -> None:
    rule(1149, "no_retry", active=False)
    made = running(1)
    (job,) = Pilot().fetch(1)
    fail(job, {"pilot_error_code": 1149})
    adder.run()
    assert notes(job) == [("retry_not_applicable", False)]
    assert files(made)[0].max_attempt == 4


def test_a_rule_looks_at_the_beginning_of_the_text_and_at_the_date() -> None:
    rule(1305, "no_retry", pattern="wrong options", expires=datetime(2026, 6, 1, tzinfo=UTC))
    made = running(3)
    texts = ("wrong options: -x", "it said: wrong options", "wrong options: -y")
    when = (datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
    for job, text, now in zip(Pilot().fetch(3), texts, when, strict=True):
        fail(job, {"pilot_error_code": 1305, "pilot_error_diag": text})
        adder.run(now)
    assert [f.max_attempt for f in files(made)] == [1, 4, 4]


def test_a_rule_that_cannot_be_read_holds_up_nobody() -> None:
    rule(1149, "limit_retry", "maxAttempt=many")
    rule(1149, "no_retry", pattern="(")
    ErrorClass.objects.create(error_source="pilot", error_code=1149, name="system", pattern="no (?!t)")
    made = running(1)
    fail_all({"pilot_error_code": 1149})
    drive(Pilot())
    assert status(made) == "done"


def test_rules_that_do_nothing_are_named_with_the_reason_where_rules_are_listed(admin_client: Client) -> None:
    rule(1149, "no_retry", pattern="no (?!t)")
    rule(1150, "limit_retry", "maxAttempt=many")
    rule(1151, "no_retry", pattern="fine", description="asked for by the lab")
    page = admin_client.get(reverse("admin:tasks_app_retryrule_changelist")).content.decode()
    assert "looks ahead or behind with (?!" in page and "not a number from 1" in page
    assert "asked for by the lab" in page
    ErrorClass.objects.create(error_source="pilot", error_code=1149, name="system", pattern="no (?!t)")
    page = admin_client.get(reverse("admin:tasks_app_errorclass_changelist")).content.decode()
    assert "looks ahead or behind with (?!" in page


def test_a_pattern_made_to_stall_is_answered_at_once_and_rightly() -> None:
    rule(1149, "no_retry", pattern="(a+)+X")
    ErrorClass.objects.create(error_source="pilot", error_code=1149, name="system", pattern="(a|a)*Y")
    made = running(2)
    first, second = Pilot().fetch(2)
    fail(first, {"pilot_error_code": 1149, "pilot_error_diag": "a" * 500})
    fail(second, {"pilot_error_code": 1149, "pilot_error_diag": "a" * 60 + "X"})
    began = time.process_time()
    adder.run()
    assert time.process_time() - began < 10
    by_name = {f.lfn: f.max_attempt for f in files(made)}
    assert (by_name[inputs_of(first)[0]], by_name[inputs_of(second)[0]]) == (4, 1)


def test_the_rules_that_an_installation_starts_with_can_be_read_and_act() -> None:
    start = import_module("tasks_app.migrations.0004_retry_rules_and_scouts")
    for source, code, pattern, action, given, _ in start.RULES:
        row = RetryRule(error_source=source, error_code=code, pattern=pattern, action=action, parameters=given)
        row.full_clean()
        row.save()
    made = running(2)
    first, second = Pilot().fetch(2)
    fail(first, {"pilot_error_code": 1305, "pilot_error_diag": "exit 1:\nMemoryError: cannot allocate"})
    fail(second, {"pilot_error_code": 1349})
    adder.run()
    by_name = {f.lfn: (f.ram_count, f.max_attempt) for f in files(made)}
    assert by_name[inputs_of(first)[0]] == (2000, 4)
    assert by_name[inputs_of(second)[0]] == (0, 1)


def test_a_batch_that_no_rule_knows_costs_one_statement_more() -> None:
    rule(1149, "no_retry")
    made = running(6)
    fail_all({"pilot_error_code": 1305})
    asked: list[str] = []
    with hot_cursor() as cursor:
        failed = [job.id for job in jobs(made)]
        found = apply_rules.find(cursor, failed)
        asked.append(str(cursor.rowcount))
    assert (dict(found.by_task), asked) == ({}, ["0"])
    adder.run()
    assert not RetryNote.objects.exists()


def unmerged(count: int = 3, **more: Any) -> int:
    """A task whose first jobs have ended, so that one merge job is queued."""
    spec = {"transPath": "merge", "jobParameters": "--in ${TRN_OUTPUT0/L} --out ${OUTPUT0} --logs ${TRN_LOG0/L}"}
    made = running(count, mergeOutput=True, mergeSpec=spec, **more)
    pilot = Pilot()
    for job in pilot.fetch(100):
        pilot.start(job)
        pilot.end(job)
    settle()
    return made


def merges(made: int) -> list[Any]:
    return sorted(jobs(made, processing_type="pmerge"), key=lambda job: job.id)


def test_a_merge_job_that_ran_out_of_memory_is_tried_again_with_more() -> None:
    rule(1235, "increase_memory")
    made = unmerged()
    assert fail_all(MEMORY, max_pss_kb=2_500 * 1024) == []
    adder.run()
    assert {f.ram_count for kind in ("trn_log", "trn_output") for f in files(made, kind)} == {3000}
    assert {f.ram_count or 0 for f in files(made)} == {0}, "the inputs of the task's other jobs need no more"
    assert (task(made).ram_count, task(made).merge_ram_count) == (1000, 3000), "all that was written needed more"
    settle()
    first, second = merges(made)
    assert (first.min_ram_mb, second.min_ram_mb) == (1800, 2700)
    said = [note.detail for note in RetryNote.objects.filter(job_id=first.id)]
    assert "the job had 2000 MB and used 2500 MB, its inputs get 3000 MB" in said
    drive(Pilot())
    assert status(made) == "done"


def test_only_what_a_failed_merge_job_read_is_merged_with_more_memory() -> None:
    rule(1235, "increase_memory")
    made = unmerged(8, nFilesPerMergeJob=2)
    assert len(merges(made)) == 4
    of_first = merges(made)[0].id
    rest = fail_all(MEMORY, lambda job: job["PandaID"] == of_first)
    settle()
    *others, again = merges(made)
    assert [job.min_ram_mb for job in (*others, again)] == [1800] * 4 + [2700]
    assert task(made).merge_ram_count is None and task(made).merge_ram_unit is None
    assert sorted(f.ram_count or 0 for f in files(made, "trn_log")) == [0] * 6 + [3000] * 2
    pilot = Pilot()
    for job in rest:
        pilot.start(job)
        pilot.end(job)
    drive(Pilot())
    assert status(made) == "done"


def test_a_merge_job_that_needs_more_than_any_queue_has_waits_and_says_so() -> None:
    rule(1235, "increase_memory")
    made = unmerged()
    fail_all(MEMORY, max_pss_kb=5_000 * 1024)
    settle()
    assert len(merges(made)) == 1
    assert "needs 6000 MB" in (task(made).error_dialog or "") and "its outputs wait" in (task(made).error_dialog or "")


@pytest.mark.parametrize(
    ("action", "parameters", "said"),
    [
        ("increase_cputime", None, "merge jobs may run as long as their queue allows"),
        ("reduce_input", None, "is set by nGBPerMergeJob, nFilesPerMergeJob"),
    ],
)
def test_what_a_rule_cannot_do_for_a_merge_job_stands_on_the_job(action: str, parameters: str, said: str) -> None:
    rule(1171, action, parameters)
    made = unmerged()
    fail_all({"pilot_error_code": 1171})
    settle()
    (note,) = RetryNote.objects.filter(job_id=merges(made)[0].id)
    assert said in note.detail and note.code == "retry_not_applicable"
    drive(Pilot())
    assert status(made) == "done"


def test_merge_jobs_whose_error_is_not_tried_again_give_their_files_up_at_once() -> None:
    rule(1171, "no_retry")
    made = unmerged(2, maxAttempt=4)
    fail_all({"pilot_error_code": 1171})
    settle()
    assert {f.status for kind in ("trn_log", "trn_output") for f in files(made, kind) if f.attempt} == {"notmerged"}
    drive(Pilot())
    assert status(made) == "done"
    assert [job.status for job in merges(made)] == ["failed", "finished"]


def test_an_end_by_the_site_does_not_count_for_merge_jobs_either() -> None:
    made = unmerged(2)
    for _ in range(4):
        fail_all({"pilot_error_code": 1201})
        settle()
    drive(Pilot())
    assert status(made) == "done"
    assert [job.status for job in merges(made)] == ["failed"] * 4 + ["finished"]
