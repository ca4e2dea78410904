"""Tasks with a build step: the library is made once at each place, and the jobs that need it wait for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from brokerage_app.models import Queue, StorageEndpoint
from jedisite.database.sql import hot_cursor
from tasks_app.agents import adder, feeder, job_generator, libraries, refiner
from tasks_app.agents.watchdogs import waiting_for_lib
from tasks_app.explaining import deciding_again
from tasks_app.models import (
    CatalogueDataset,
    CatalogueFile,
    Dataset,
    File,
    Job,
    JobFile,
    JobParams,
    JobStatusLog,
    TaskParams,
)
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.submission import command_queue
from tests.flow.driving import (
    SITE,
    add_dataset,
    add_queue,
    agents_turn,
    dataset,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    states,
    status,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Job as Described
from tests.flow.pilot import Pilot, always, drive

pytestmark = pytest.mark.usefixtures("books")

SPEC = {
    "prodSourceLabel": "panda",
    "archiveName": "sources.1234.tar.gz",
    "jobParameters": "-i ${IN} -o ${OUT} --sourceURL ${SURL} -r . ",
}


def build_task(name: str = "lab.t", files: int = 4, **more: Any) -> int:
    add_dataset(f"{name}.in", files)
    params = parameters(
        name,
        {"type": "constant", "value": "-l ${LIB}"},
        reads(f"{name}.in"),
        sourceURL="https://cache.example:443",
        **{"nFilesPerJob": 1, "buildSpec": SPEC, **more},
    )
    return submit(params)


def give(task_id: int, command: str) -> None:
    command_queue.give_command(task_id, command, by="ada", reason="because")


def is_build(job: Described) -> bool:
    return bool(job["prodSourceLabel"] == "panda")


def builds_fail(times: int = 1000) -> Callable[[Described], str]:
    """The first so many builds fail; all else goes well."""
    left = iter(range(times))
    return lambda job: "failed" if is_build(job) and next(left, None) is not None else "finished"


def builds(task_id: int, **conditions: Any) -> list[Job]:
    return jobs(task_id, prod_source_label="panda", **conditions)


def runs(task_id: int, **conditions: Any) -> list[Job]:
    return jobs(task_id, prod_source_label="user", **conditions)


def until_built(task_id: int) -> Job:
    """Agents until the jobs are made; returns the build job."""
    for run in (refiner.run, feeder.run, job_generator.run):
        wake()
        run()
    (build,) = builds(task_id)
    return build


def test_the_library_is_built_first_and_every_job_reads_it() -> None:
    made = build_task(files=4)
    pilot = Pilot()
    drive(pilot)
    assert status(made) == "done"
    (build,) = builds(made)
    assert [is_build(job) for job in pilot.ran] == [True, False, False, False, False]
    assert (build.attempt, build.max_attempt, build.core_count, build.min_ram_mb) == (1, 1, 1, 2000)
    assert build.current_priority >= 2000 > runs(made)[0].current_priority
    lib = dataset(made, "lib")
    assert lib.name.startswith("panda.") and lib.name.endswith(f".lib._{made}")
    assert (lib.status, lib.state, lib.files, lib.files_finished) == ("done", "closed", 2, 2)
    (archive,) = files(made, "lib")
    assert archive.lfn == f"{lib.name}.{archive.id}.lib.tgz"
    assert pilot.ran[0]["jobPars"] == (
        f"-i sources.1234.tar.gz -o {archive.lfn} --sourceURL https://cache.example:443 -r . "
    )
    for job in pilot.ran[1:]:
        assert job["inFiles"].split(",")[-1] == archive.lfn
        assert f"-l {archive.lfn} " in job["jobPars"]
        assert job["surlsIn"][-1] == archive.surl == f"root://se.example//{archive.lfn}"
        assert job["fsize"].split(",")[-1] == "100"
    assert CatalogueFile.objects.filter(dataset__name=lib.name).count() == 2
    assert not CatalogueDataset.objects.get(name=lib.name).open


def test_a_build_job_may_have_the_label_of_its_task() -> None:
    made = build_task(files=1, buildSpec={**SPEC, "prodSourceLabel": "user"})
    drive(Pilot())
    assert (status(made), builds(made), len(runs(made))) == ("done", [], 2)


def test_a_library_whose_stored_address_is_not_its_place_is_handed_out_without_it() -> None:
    """As before reports were looked at, or after a storage was taken from this machine."""
    made = build_task(files=1)
    until_built(made)
    pilot = Pilot()
    (got,) = pilot.fetch(10)
    pilot.start(got)
    pilot.end(got)
    adder.run()
    libraries.run()
    (run,) = runs(made)
    assert JobFile.objects.filter(job_id=run.id, type="lib").update(surl="file:///etc/passwd") == 1
    (got,) = pilot.fetch(10)
    assert got["PandaID"] == run.id
    assert got["surlsIn"] == ["file://localhost/data/lab.t.in.00000", None], "what was registered lies anywhere"


def test_jobs_wait_for_their_library_and_say_so() -> None:
    made = build_task(files=3)
    build = until_built(made)
    assert build.status == "activated"
    assert [job.status for job in runs(made)] == ["defined"] * 3
    reason = JobStatusLog.objects.get(job_id=runs(made)[0].id).reason
    assert reason == f"waits for the library that job {build.id} builds"
    pilot = Pilot()
    (got,) = pilot.fetch(10)
    assert got["PandaID"] == build.id
    pilot.start(got)
    settle()
    assert {job.status for job in runs(made)} == {"defined"}
    pilot.end(got)
    adder.run()
    libraries.run()
    assert {job.status for job in runs(made)} == {"activated"}


def test_pilots_for_users_jobs_get_their_builds_too() -> None:
    made = build_task(files=1)
    build = until_built(made)
    pilot = Pilot()
    assert not pilot.fetch(1, label="managed")
    assert [job["PandaID"] for job in pilot.fetch(1, label="user")] == [build.id]


def place(name: str) -> StorageEndpoint:
    return StorageEndpoint.objects.create(name=name, site_name=name, path="/data")


def test_two_sites_have_their_own_builds_and_queues_that_share_a_storage_share_one(settings: Any) -> None:
    settings.JEDI_QUEUE_FLOOR = 4
    Queue.objects.filter(pk=SITE).update(storage=place("SE_A"))
    add_queue("SITE_B", storage=place("SE_B"))
    add_queue("SITE_C", storage_id="SE_B")
    made = build_task(files=12)
    drive(Pilot(), Pilot(site="SITE_B"), Pilot(site="SITE_C"))
    assert status(made) == "done"
    assert sorted(Dataset.objects.filter(task_id=made, type="lib").values_list("destination", flat=True)) == [
        "SE_A",
        "SE_B",
    ]
    for job in runs(made):
        (lib,) = JobFile.objects.filter(job_id=job.id, type="lib")
        assert Dataset.objects.get(pk=lib.dataset_id).destination == ("SE_A" if job.site == SITE else "SE_B")
    assert {job.site for job in runs(made)} == {SITE, "SITE_B", "SITE_C"}


def test_when_the_build_fails_its_jobs_end_with_it_and_the_files_are_tried_again() -> None:
    made = build_task(files=3)
    drive(Pilot(builds_fail(1)))
    assert status(made) == "done"
    failed, good = builds(made)
    assert (failed.status, good.status) == ("failed", "finished")
    lost = runs(made, status="closed")
    assert len(lost) == 3
    assert {(job.sub_status, job.task_buffer_error_code) for job in lost} == {("buildfailed", 300)}
    assert lost[0].task_buffer_error_diag == (
        f"the job that built the library ({failed.id} at {SITE}) failed: exe:65, the payload ended with 65"
    )
    assert [(f.attempt, f.failed_attempt) for f in files(made)] == [(2, 0)] * 3
    assert [dataset.status for dataset in Dataset.objects.filter(task_id=made, type="lib").order_by("id")] == [
        "failed",
        "done",
    ]


def test_three_failed_builds_break_the_task_with_the_error_of_the_build() -> None:
    made = build_task(files=2, maxAttempt=10)
    drive(Pilot(builds_fail()))
    assert status(made) == "broken"
    assert len(builds(made)) == 3
    dialog = task(made).error_dialog or ""
    assert "could not be built: 3 build jobs failed" in dialog
    assert "exe:65, the payload ended with 65" in dialog


def test_builds_that_fail_at_one_place_do_not_break_a_task_that_works_at_another(settings: Any) -> None:
    settings.JEDI_QUEUE_FLOOR = 4
    Queue.objects.filter(pk=SITE).update(storage=place("SE_A"))
    add_queue("SITE_B", storage=place("SE_B"))
    made = build_task(files=60, maxAttempt=10, nFilesPerJob=1)

    def plan(job: Described) -> str:
        return "failed" if is_build(job) and Job.objects.get(pk=job["PandaID"]).site == "SITE_B" else "finished"

    drive(Pilot(plan), Pilot(plan, site="SITE_B"))
    assert status(made) == "done"
    assert len(builds(made, status="failed")) == 3, "after three failures the site gets no more jobs"
    assert {job.site for job in runs(made, status="finished")} == {SITE}
    found = deciding_again.again(deciding_again.kept_of_task(made), [f"site.{SITE}.status=offline"])
    assert [choice.site for choice in found.before.chosen] == [SITE]
    assert {skip.site: skip.code for skip in found.after.skipped} == {
        SITE: "site_offline",
        "SITE_B": "build_fails_there",
    }


def test_the_page_of_a_waiting_job_names_the_job_that_it_waits_for(client: Client) -> None:
    made = build_task(files=1)
    build = until_built(made)
    client.force_login(User.objects.create_user("grace"))
    text = client.get(f"/jobs/{runs(made)[0].id}/").content.decode()
    assert "The job waits for its library" in text
    assert f'<a href="/jobs/{build.id}/">job {build.id}</a>, which is activated' in text
    assert "waits for its library" not in client.get(f"/jobs/{build.id}/").content.decode()


def test_killing_a_task_ends_the_build_and_the_jobs_that_wait() -> None:
    made = build_task(files=2)
    build = until_built(made)
    pilot = Pilot()
    (got,) = pilot.fetch(1)
    pilot.start(got)
    give(made, "kill")
    agents_turn()
    assert pilot.start(got) == "tobekilled"
    pilot.end(got, "failed")
    settle()
    assert status(made) == "aborted"
    assert states(made) == {"cancelled": 3}
    assert builds(made)[0].id == build.id


def test_a_killed_build_is_no_failure_but_takes_its_jobs_with_it() -> None:
    made = build_task(files=2)
    build = until_built(made)
    with transaction.atomic(), hot_cursor() as cursor:
        book(cursor, [Outcome(build.id, made, "cancelled", diag="a shifter did it", by="ops")])
    drive(Pilot())
    assert status(made) == "done"
    assert states(made) == {"cancelled": 1, "closed": 2, "finished": 3}


def test_a_paused_task_holds_its_jobs_back_when_the_library_comes() -> None:
    made = build_task(files=2)
    until_built(made)
    pilot = Pilot()
    (got,) = pilot.fetch(1)
    pilot.start(got)
    give(made, "pause")
    agents_turn()
    pilot.end(got)
    settle()
    assert [job.status for job in runs(made)] == ["throttled"] * 2
    give(made, "resume")
    drive(pilot)
    assert status(made) == "done"


def test_a_retry_reads_the_library_that_is_there() -> None:
    made = build_task(files=2, maxAttempt=1)
    drive(Pilot(lambda job: "finished" if is_build(job) or "in.00001" in job["inFiles"] else "failed"))
    assert status(made) == "finished"
    give(made, "retry")
    drive(Pilot())
    assert status(made) == "done"
    assert len(builds(made)) == 1
    assert len({lib for job in runs(made) for lib in inputs(job.id, "lib")}) == 1


def test_a_library_that_is_too_old_or_of_other_sources_is_built_anew() -> None:
    made = build_task(files=3, maxAttempt=1)
    drive(Pilot(lambda job: "finished" if is_build(job) else "failed"))
    give(made, "incexec")
    drive(Pilot(lambda job: "finished" if is_build(job) else "failed"))
    assert len(builds(made)) == 1, "it is new enough"
    Dataset.objects.filter(task_id=made, type="lib").update(creation_time=timezone.now() - timedelta(days=7, minutes=1))
    give(made, "incexec")
    drive(Pilot(lambda job: "finished" if is_build(job) else "failed"))
    assert len(builds(made)) == 2
    params = TaskParams.objects.get(task_id=made)
    params.params["fixedSandbox"] = "sources.5678.tar.gz"
    params.save()
    give(made, "incexec")
    drive(Pilot())
    assert status(made) == "done"
    newest = builds(made)[-1]
    assert len(builds(made)) == 3
    assert JobParams.objects.get(pk=newest.id).params.startswith("-i sources.5678.tar.gz ")


def test_many_waiting_jobs_are_activated_by_one_statement() -> None:
    made = build_task(files=100)
    until_built(made)
    Pilot().work(1)
    adder.run()
    with CaptureQueriesContext(connection) as few:
        libraries.run()
    assert {job.status for job in runs(made)} == {"activated"}
    assert len(runs(made)) == 100
    assert len(few) < 12, [q["sql"][:100] for q in few]


def test_the_watchdog_finds_jobs_whose_library_came_without_anybody_seeing() -> None:
    made = build_task(files=2)
    until_built(made)
    Pilot().work(1)
    adder.run()
    Dataset.objects.filter(task_id=made, type="lib").update(status="done", state="closed")
    libraries.run()
    assert [job.status for job in runs(made)] == ["defined"] * 2
    assert waiting_for_lib.run(now=timezone.now() + timedelta(minutes=59)).items == 0
    assert waiting_for_lib.run(now=timezone.now() + timedelta(minutes=61)).items == 2
    assert [job.status for job in runs(made)] == ["activated"] * 2


def test_the_sources_may_come_through_data_management() -> None:
    add_dataset("lab.sandboxes", 3)
    spec = {**SPEC, "tarBallViaDDM": "lab.sandboxes:lab.sandboxes.00001"}
    made = build_task(files=1, buildSpec={**spec, "archiveName": None})
    build = until_built(made)
    pilot = Pilot()
    (got,) = pilot.fetch(1)
    assert got["PandaID"] == build.id
    assert got["inFiles"] == "lab.sandboxes.00001"
    assert got["jobPars"].startswith("-i lab.sandboxes.00001 -o panda.")
    pilot.start(got)
    pilot.end(got)
    drive(pilot)
    assert status(made) == "done"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({**SPEC, "tarBallViaDDM": "lab.nowhere:x"}, "lab.nowhere does not exist"),
        ({**SPEC, "tarBallViaDDM": "without a colon"}, "dataset:file"),
        ({**SPEC, "archiveName": None}, "${IN} cannot be filled"),
    ],
)
def test_a_build_step_that_cannot_be_run_breaks_the_task(spec: dict[str, Any], says: str) -> None:
    made = build_task(files=1, buildSpec=spec)
    settle()
    assert status(made) == "broken"
    assert says in (task(made).error_dialog or "")


def test_a_task_without_a_build_step_has_no_library() -> None:
    add_dataset("lab.in", 1)
    made = submit(parameters("lab.t", reads("lab.in"), nFilesPerJob=1))
    drive(Pilot(always("finished")))
    assert status(made) == "done"
    assert not File.objects.filter(task_id=made, type="lib").exists()
