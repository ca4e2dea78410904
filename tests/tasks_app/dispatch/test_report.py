"""What pilots report: who may, how often, in which order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder
from tasks_app.api.panda.wire import moment
from tasks_app.ddm.addresses import Roots
from tasks_app.dispatch.bulk_reports import update_jobs
from tasks_app.dispatch.reports import NotYoursError, OtherAttemptError, Proof, Report, UnknownJobError, update_job
from tasks_app.domain.states import JOB_FINAL
from tasks_app.labs.bench.scene import SECRET, add_jobs
from tasks_app.models import CatalogueFile, Job, JobOutputReport, JobStatusLog
from tasks_app.outcomes.final_reports import judge
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.job_outputs import Output
from tasks_app.outcomes.outcomes import book
from tests.flow.driving import SITE, add_dataset, age, dataset, parameters, reads, settle, status, submit, task
from tests.flow.pilot import Pilot, drive, final_report, report, stored
from tests.flow.threads import together


def one_job(**more: Any) -> tuple[int, Pilot, dict[str, Any]]:
    """A task of one job that a pilot has just been given."""
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, **more))
    settle()
    pilot = Pilot()
    (job,) = pilot.fetch()
    return made, pilot, job


def row(job: dict[str, Any]) -> dict[str, Any]:
    return Job.objects.values().get(pk=job["PandaID"])


@pytest.mark.parametrize(
    "wrong", [{"secret": "guessed"}, {"fence": 0}, {"fence": 2}, {"secret": ""}, {"site": "SITE_B"}], ids=str
)
def test_a_report_with_a_wrong_proof_is_refused_and_changes_nothing(books: None, wrong: dict[str, Any]) -> None:
    _, pilot, job = one_job()
    pilot.start(job)
    before = row(job)
    for state in ("starting", "running", "finished", "failed"):
        said = report(job, state, outputs=stored(job))
        with pytest.raises(NotYoursError):
            update_job(replace(said, proof=replace(said.proof, **wrong)))
        assert row(job) == before
    assert not JobOutputReport.objects.exists()
    drive_on(pilot, job)


def drive_on(pilot: Pilot, job: dict[str, Any]) -> None:
    pilot.end(job)
    drive(pilot)


def bare_job() -> tuple[Pilot, dict[str, Any]]:
    """A job that has been handed to a pilot which carries no secret."""
    add_dataset("lab.in", 1)
    submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot(with_secret=False)
    (job,) = pilot.fetch()
    return pilot, job


def test_a_pilot_without_a_secret_is_known_by_its_site_and_the_attempt(books: None) -> None:
    pilot, job = bare_job()
    number, before = job["PandaID"], row(job)
    assert "jobSecret" not in job
    strangers = (
        Proof(site="SITE_B", attempt=1),
        Proof(site=SITE),
        Proof(1, "", SITE, 1),
        Proof(1, "guessed", SITE, 1),
    )
    for state, proof in itertools.product(("running", "finished", "failed", "holding"), strangers):
        with pytest.raises(NotYoursError):
            update_job(Report(number, state, proof))
    with pytest.raises(OtherAttemptError):
        update_job(Report(number, "finished", Proof(site=SITE, attempt=2)))
    assert row(job) == before
    assert update_job(Report(number, "running", Proof(site=SITE, attempt=1))) == "NULL"
    assert row(job)["status"] == "running"
    drive_on(pilot, job)


def test_a_job_that_was_handed_out_with_a_secret_is_not_taken_over_by_one_who_knows_its_attempt(books: None) -> None:
    _, pilot, job = one_job()
    before = row(job)
    for state in (*STATES, "sent"):
        for proof in (Proof(site=SITE, attempt=1), Proof(attempt=1), Proof(site=SITE, attempt=2)):
            with pytest.raises(NotYoursError) as refused:
                update_job(Report(job["PandaID"], state, proof, outputs=stored(job)))
            assert type(refused.value) is NotYoursError, "nothing is told of its attempt"
    assert row(job) == before
    drive_on(pilot, job)


def test_each_job_of_a_call_answers_to_its_own_secret_only(books: None, api: Callable[..., Client]) -> None:
    add_dataset("lab.in", 3)
    submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot()
    jobs = pilot.fetch(3)
    assert len({job["jobSecret"] for job in jobs}) == 3
    before = [row(job) for job in jobs]
    client = api("pilot", site=SITE)
    for mine, other in itertools.permutations(jobs, 2):
        foreign = replace(report(other, "failed"), proof=Proof(mine["fence"], mine["jobSecret"]))
        with pytest.raises(NotYoursError):
            update_job(foreign)
        assert isinstance(update_jobs([foreign])[0], NotYoursError)
        said = {"job_id": other["PandaID"], "job_status": "running", "fence": 1, "job_secret": mine["jobSecret"]}
        answer = client.post("/api/v1/pilot/update_job", json.dumps(said), content_type="application/json")
        assert answer.status_code == 403
    assert [row(job) for job in jobs] == before
    for job in jobs:
        pilot.start(job)
        pilot.end(job)
    drive(pilot)


def test_a_report_with_the_secret_of_a_job_and_the_number_of_another_attempt_is_not_booked(
    books: None, api: Callable[..., Client]
) -> None:
    _, pilot, job = one_job()
    pilot.start(job)
    before = row(job)
    for state in STATES:
        said = report(job, state, outputs=stored(job))
        with pytest.raises(OtherAttemptError):
            update_job(replace(said, proof=replace(said.proof, attempt=2)))
    client = api("pilot", site=SITE)
    told = {"job_id": job["PandaID"], "job_status": "running", "fence": job["fence"], "job_secret": job["jobSecret"]}

    def said_to(name: str, body: Any) -> Any:
        answer = client.post(f"/api/v1/pilot/{name}", json.dumps(body), content_type="application/json").json()
        assert answer["success"]
        return answer["data"]

    assert said_to("update_job", {**told, "attempt_nr": 2})["command"] == "badattemptnr,tobekilled"
    assert said_to("update_jobs_bulk", {"job_list": [{**told, "attempt_nr": 2}]})[0]["command"] == "tobekilled"
    assert row(job) == before
    for named in ({"attempt_nr": 1}, {}):
        assert said_to("update_job", {**told, **named})["command"] == "NULL"
    drive_on(pilot, job)


def test_a_job_whose_outputs_are_on_their_way_is_kept_alive_by_its_reports(books: None) -> None:
    _, pilot, job = one_job()
    pilot.start(job)
    for state in ("holding", "transferring"):
        age(job["PandaID"], 3600)
        before = row(job)
        assert update_job(report(job, state)) == "NULL"
        now = row(job)
        assert now.pop("heartbeat_at") > before.pop("heartbeat_at")
        assert now == before
    drive_on(pilot, job)


def test_a_job_that_was_handed_to_nobody_takes_no_report(books: None) -> None:
    add_dataset("lab.in", 1)
    submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    waiting = Job.objects.get()
    with pytest.raises(NotYoursError):
        update_job(Report(waiting.id, "finished", Proof(0, "")))
    update_job(Report(waiting.id, "finished", Proof(site=SITE, attempt=1)))
    waiting.refresh_from_db()
    assert waiting.status == "activated"
    assert not JobOutputReport.objects.exists()
    drive(Pilot())


def test_an_unknown_job_is_told_from_a_foreign_one_inside_only(tables: None) -> None:
    with pytest.raises(UnknownJobError):
        update_job(Report(1, "running", Proof(1, "x")))


def test_over_http_a_foreign_job_and_an_unknown_one_get_the_same_answer(
    books: None, api: Callable[..., Client]
) -> None:
    _, pilot, job = one_job()
    call = api("pilot", site=SITE)
    bodies = set()
    for number, secret in ((job["PandaID"], "guessed"), (1, "guessed"), (2**62, job["jobSecret"])):
        said = {"job_id": number, "job_status": "running", "fence": job["fence"], "job_secret": secret}
        answer = call.post("/api/v1/pilot/update_job", json.dumps(said), content_type="application/json")
        assert answer.status_code == 403
        bodies.add(answer.content)
    assert len(bodies) == 1
    drive_on(pilot, job)


def test_a_token_of_another_site_may_not_report_even_with_the_secret(books: None, api: Callable[..., Client]) -> None:
    _, pilot, job = one_job()
    said = {"job_id": job["PandaID"], "job_status": "running", "fence": job["fence"], "job_secret": job["jobSecret"]}
    answers = [
        api("pilot", site=site, name=site).post(
            "/api/v1/pilot/update_job", json.dumps(said), content_type="application/json"
        )
        for site in ("SITE_B", SITE)
    ]
    assert [answer.status_code for answer in answers] == [403, 200]
    drive_on(pilot, job)


@pytest.mark.parametrize("text", ["{broken", "[1, 2", '{"a": NaN}', '{"events": 3}', "plain words"])
def test_whatever_the_metadata_is_the_end_of_the_job_is_kept(
    books: None, api: Callable[..., Client], text: str
) -> None:
    made, pilot, job = one_job()
    said = {
        "job_id": job["PandaID"],
        "job_status": "finished",
        "fence": job["fence"],
        "job_secret": job["jobSecret"],
        "meta_data": text,
        "job_output_report": json.dumps(stored(job)),
    }
    answer = api("pilot", site=SITE).post("/api/v1/pilot/update_job", json.dumps(said), content_type="application/json")
    assert answer.status_code == 200
    drive(pilot)
    assert status(made) == "done"


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("outcome", ["finished", "failed"])
def test_a_final_report_counts_once_however_often_it_is_sent(books: None, outcome: str, times: int) -> None:
    made, pilot, job = one_job(maxAttempt=1)
    pilot.start(job)
    answers = {update_job(final_report(job, outcome)) for _ in range(times)}
    adder.run()
    answers |= {update_job(final_report(job, outcome)) for _ in range(times)}
    adder.run()
    settle()
    assert answers == {"NULL"}
    assert status(made) == ("done" if outcome == "finished" else "failed")
    assert (dataset(made).files_finished, dataset(made).files_failed) == ((1, 0) if outcome == "finished" else (0, 1))
    assert JobStatusLog.objects.filter(job_id=job["PandaID"], status="holding").count() == 1
    assert CatalogueFile.objects.filter(dataset__name="lab.t.out").count() == (1 if outcome == "finished" else 0)


@pytest.mark.parametrize("how", ["failed", "cancelled", "closed"])
def test_a_late_success_of_a_job_that_was_given_up_is_told_so_by_every_call(
    tables: None, api: Callable[..., Client], how: str
) -> None:
    """Ours and PanDA's pilots, of both interfaces, one by one and in bulk: their files are not to stay."""
    ours, theirs = add_jobs(1, [SITE], how, inputs=0)[0], add_jobs(1, [SITE], how, inputs=0)[0]
    Job.objects.filter(pk=theirs).update(secret_hash=None, attempt=1)
    assert update_job(Report(ours, "finished", Proof(1, SECRET), outputs=both_outputs(ours))) == "tobekilled"
    pilot = api("pilot", site=SITE)
    told = {"job_id": theirs, "job_status": "finished", "attempt_nr": 1}
    answer = pilot.post("/api/v1/pilot/update_job", json.dumps(told), content_type="application/json").json()
    assert answer["data"]["command"] == "tobekilled"
    bulk = {"job_list": [told]}
    answer = pilot.post("/api/v1/pilot/update_jobs_bulk", json.dumps(bulk), content_type="application/json").json()
    assert answer["data"][0]["command"] == "tobekilled"
    old = pilot.post("/server/panda/updateJob", {"jobId": theirs, "state": "finished", "attemptNr": 1}).json()
    assert (old["StatusCode"], old["command"]) == (0, "tobekilled")
    assert not JobOutputReport.objects.exists()
    assert set(Job.objects.values_list("status", flat=True)) == {how}


def test_a_final_report_counts_once_when_it_is_sent_five_times_at_once(books: None) -> None:
    made, pilot, job = one_job()
    pilot.start(job)
    together(*(lambda: update_job(final_report(job, "finished")) for _ in range(5)))
    assert JobStatusLog.objects.filter(job_id=job["PandaID"], status="holding").count() == 1
    settle()
    assert status(made) == "done"
    assert task(made).progress == 100


def test_of_two_contrary_reports_at_once_one_counts(books: None) -> None:
    made, pilot, job = one_job(maxAttempt=1)
    pilot.start(job)
    together(
        *(lambda outcome=outcome: update_job(final_report(job, outcome)) for outcome in ("finished", "failed") * 2)
    )
    assert JobOutputReport.objects.count() == 1
    settle()
    assert status(made) in ("done", "failed")
    assert dataset(made).files_finished + dataset(made).files_failed == 1


def test_a_report_and_its_booking_at_once_agree(books: None) -> None:
    add_dataset("lab.in", 40)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    settle()
    pilot = Pilot()
    given = pilot.fetch(40)

    def tell() -> None:
        for job in given:
            pilot.end(job, "finished")

    def book() -> None:
        while Job.objects.exclude(status="finished").exists():
            adder.run()

    together(tell, tell, book, book)
    settle()
    assert status(made) == "done"


STATES = ("starting", "running", "holding", "transferring", "finished", "failed")
SEQUENCES = [s for length in (1, 2, 3) for s in itertools.product(STATES, repeat=length)]


def test_no_order_of_reports_moves_a_job_out_of_a_final_state(tables: None) -> None:
    ids = add_jobs(len(SEQUENCES), [SITE], "sent", inputs=0)
    ended: dict[int, str] = {}
    for place in range(3):
        for job, sequence in zip(ids, SEQUENCES, strict=True):
            if place < len(sequence):
                update_job(Report(job, sequence[place], Proof(1, SECRET), outputs=both_outputs(job)))
        adder.run()
        now = dict(Job.objects.filter(pk__in=ids).values_list("id", "status"))
        for job, sequence in zip(ids, SEQUENCES, strict=True):
            if job in ended:
                assert now[job] == ended[job], sequence
            elif now[job] in JOB_FINAL:
                ended[job] = now[job]
                assert now[job] == sequence[place]
    for job, sequence in zip(ids, SEQUENCES, strict=True):
        final = [state for state in sequence if state in ("finished", "failed")]
        assert ended.get(job) == (final[0] if final else None), sequence


def both_outputs(job: int) -> dict[str, Any]:
    return {f"bench._{job}.{k}": {"fsize": 1, "adler32": "1", "surl": "root://se.example//x"} for k in (1, 2)}


def test_no_order_of_reports_moves_a_running_job_back(tables: None) -> None:
    (job,) = add_jobs(1, [SITE], "sent", inputs=0)
    for state in ("running", "starting", "holding", "transferring"):
        assert update_job(Report(job, state, Proof(1, SECRET))) == "NULL"
        assert Job.objects.get(pk=job).status == "running"


def test_booking_another_end_on_a_job_that_has_ended_changes_nothing(books: None) -> None:
    made, pilot, job = one_job()
    pilot.start(job)
    pilot.end(job, "finished")
    settle()
    before = (row(job), JobStatusLog.objects.count(), dataset(made).files_finished)
    outcome = Outcome(job["PandaID"], made, "failed", "jobdispatcher", 100, "no heartbeat")
    with transaction.atomic(), hot_cursor() as cursor:
        assert book(cursor, [outcome]) == 0
    assert (row(job), JobStatusLog.objects.count(), dataset(made).files_finished) == before


def test_a_clock_that_is_far_off_says_nothing(books: None) -> None:
    _, pilot, job = one_job()
    pilot.start(job)
    wrong = {"start_time": datetime(1, 1, 2, tzinfo=UTC), "end_time": datetime(9999, 1, 1, tzinfo=UTC)}
    update_job(replace(final_report(job, "failed"), **wrong))
    found = row(job)
    assert timedelta() <= found["end_time"] - found["start_time"] < timedelta(hours=1)


@pytest.mark.parametrize("at_once", [False, True], ids=["alone", "in bulk"])
def test_a_job_that_is_lost_does_not_end_before_it_starts_though_its_pilot_s_clock_is_ahead(
    books: None, at_once: bool
) -> None:
    made, _, job = one_job()
    ahead = timezone.now() + timedelta(minutes=10)
    said = [replace(report(job, state), start_time=ahead) for state in ("starting", "running")]
    if at_once:
        update_jobs(said)
    else:
        for one in said:
            update_job(one)
    outcome = Outcome(job["PandaID"], made, "failed", "jobdispatcher", 100, "no heartbeat")
    with transaction.atomic(), hot_cursor() as cursor:
        assert book(cursor, [outcome]) == 1
    found = row(job)
    assert found["start_time"] <= found["end_time"] <= timezone.now()


def test_a_pilot_whose_clock_is_ahead_says_how_long_its_job_took(books: None) -> None:
    _, _, job = one_job()
    ahead = timezone.now() + timedelta(minutes=10)
    update_job(replace(final_report(job, "failed"), start_time=ahead - timedelta(minutes=3), end_time=ahead))
    found = row(job)
    assert found["end_time"] - found["start_time"] == timedelta(minutes=3)
    assert found["end_time"] <= timezone.now()


@pytest.mark.parametrize(
    ("said", "microsecond"),
    [
        ("2026-11-22 19:10:28.303319", 303_319),
        ("2026-11-22T19:10:28.3Z", 300_000),
        ("2026-11-22 19:10:28", 0),
        ("2026-11-22 20:10:28.5+01:00", 500_000),
        ("2026-11-22 19:10:28 UTC", 0),
    ],
)
def test_times_are_read_with_their_fractions(said: str, microsecond: int) -> None:
    at = datetime(2026, 11, 22, 19, 10, 28, microsecond, tzinfo=UTC)
    assert moment({"end_time": said}, "end_time") == at
    beyond = ("0001-01-01 00:00:00+14:00", "9999-12-31T23:59:59.5-01:00")
    for none in ("2026-11-22", "yesterday-", "2026-11-22 99:00:00", *beyond):
        assert moment({"end_time": none}, "end_time") is None


def test_outputs_that_a_report_lacks_are_named_up_to_a_handful() -> None:
    def said(*names: str) -> str:
        expected = [Output(1, number, "output", name, "user.ada", "d", "SE") for number, name in enumerate(names)]
        return judge(1, 2, "finished", {}, expected, None, Roots()).diag

    assert said("a") == "the job ended successfully but did not report 1 of 1 output: a"
    assert said(*"abcde").endswith("5 of 5 outputs: a, b, c, d, e")
    assert said(*"abcdefg").endswith("7 of 7 outputs: a, b, c, d, e and 2 more")
