"""Whole tasks whose outputs are gathered at a nucleus."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import (
    GdpConfig,
    GridVersion,
    PilotCalls,
    Queue,
    QueueEndpoint,
    QueueStatusLog,
    Site,
    StorageEndpoint,
    VerdictRecord,
    WorkQueue,
)
from jedisite.models import Agent
from tasks_app.agents import feeder, refiner, task_broker
from tasks_app.agents.watchdogs import replicas, site_statistics
from tasks_app.explaining.why_site import why_site
from tasks_app.generation import nuclei
from tasks_app.inputs import locality, readers
from tasks_app.lifecycle import nucleus_waits
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, JobFile, Task, TaskStatusLog
from tasks_app.submission import parameter_changes
from tests.flow.driving import (
    add_dataset,
    add_queue,
    agents_turn,
    dataset,
    jobs,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Pilot, drive
from tests.flow.test_commands import command
from tests.flow.threads import together

pytestmark = pytest.mark.usefixtures("books", "grid")
TB = 1024.0


def configure(key: str, value: str, type: str, component: str = "taskbrokerage", vo: str | None = None) -> None:
    GdpConfig.objects.create(app="jedi", component=component, key=key, value=value, type=type, vo=vo)
    configured.forget()


def add_nucleus(name: str, *, role: str = "nucleus", free_tb: float = 500, **more: Any) -> None:
    Site.objects.create(name=name, role=role)
    queue = add_queue(f"{name}_Q", site_name=name, capability="", **more)
    disk = StorageEndpoint.objects.create(
        name=f"{name}_DATADISK", site_name=name, space_total_gb=2000 * TB, space_free_gb=free_tb * TB
    )
    QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)


@pytest.fixture
def grid(books: None) -> Any:
    """Two nuclei and a satellite, and tasks of the label managed that get a nucleus."""
    configured.forget()
    configure("TASK_BROKER_managed", "production", "str", "brokerage", "lab")
    Queue.objects.all().delete()
    for name in ("CERN", "BNL"):
        add_nucleus(name)
    add_nucleus("SMALL", role="satellite")
    yield
    configured.forget()


def managed(name: str = "lab.t", **more: Any) -> dict[str, Any]:
    return parameters(name, reads("lab.in"), prodSourceLabel="managed", nFilesPerJob=2, cpuTime=10, **more)


def fed(files: int = 4, **more: Any) -> int:
    """A task that waits for its nucleus."""
    if not CatalogueDataset.objects.filter(name="lab.in").exists():
        add_dataset("lab.in", files, events=100)
    made = submit(managed(**more))
    refiner.run()
    feeder.run()
    return made


def choose(draw: float = 0.0) -> None:
    wake()
    task_broker.run(draw=lambda: draw)


def places(task_id: int) -> set[tuple[str | None, str | None]]:
    return set(
        Dataset.objects.filter(task_id=task_id, type__in=("output", "log")).values_list("destination", "storage_token")
    )


def test_a_task_of_production_gets_a_nucleus_and_its_outputs_go_there_from_wherever_jobs_run() -> None:
    made = fed(files=120)
    assert status(made) == "assigning" and task(made).frozen_time is not None
    choose()
    row = task(made)
    assert (row.status, row.nucleus, row.frozen_time, row.error_dialog) == ("ready", "BNL", None, None)
    assert places(made) == {("nucleus:BNL", "dst:BNL_DATADISK")}
    agents_turn()
    assert {job.nucleus for job in jobs(made)} == {"BNL"}
    assert {job.site for job in jobs(made)} == {"BNL_Q", "CERN_Q", "SMALL_Q"}
    assert set(JobFile.objects.exclude(type="input").values_list("destination_se", flat=True)) == {"BNL_DATADISK"}
    for name in ("CERN_Q", "BNL_Q", "SMALL_Q"):
        drive(Pilot(site=name))
    settle()
    assert status(made) == "done"


def test_outputs_that_stay_where_they_are_made_are_not_gathered() -> None:
    made = fed(files=120, stayOutputOnSite=True)
    choose()
    agents_turn()
    assert task(made).nucleus == "BNL"
    sites = {job.id: job.site for job in jobs(made)}
    stored = JobFile.objects.exclude(type="input").values_list("job_id", "destination_se")
    assert {(sites[job], place) for job, place in stored} == {
        ("BNL_Q", "BNL_DATADISK"),
        ("CERN_Q", "CERN_DATADISK"),
        ("SMALL_Q", "SMALL_DATADISK"),
    }
    for name in ("CERN_Q", "BNL_Q", "SMALL_Q"):
        drive(Pilot(site=name))
    settle()
    assert status(made) == "done"


@pytest.mark.parametrize(("draw", "nucleus"), [(0.0, "BNL"), (0.49, "BNL"), (0.51, "CERN"), (0.99, "CERN")])
def test_chance_decides_between_nuclei_of_the_same_weight(draw: float, nucleus: str) -> None:
    made = fed()
    choose(draw)
    assert task(made).nucleus == nucleus


def test_the_decision_is_kept_with_all_nuclei_and_their_weights() -> None:
    made = fed()
    choose(0.7)
    kept = VerdictRecord.objects.get(task_id=made, kind="task")
    assert kept.sentence == "CERN was drawn of 2 nuclei with a chance of 50%."
    assert [choice[0] for choice in kept.chosen] == ["BNL", "CERN"]
    assert kept.facts["draw"] == 0.7 and kept.facts["drawn"] == "CERN"


def test_a_task_without_a_nucleus_says_why_and_is_looked_at_again_after_half_an_hour() -> None:
    StorageEndpoint.objects.update(space_free_gb=1 * TB)
    made = fed()
    assert task_broker.run().items == 0
    row = task(made)
    assert row.status == "assigning"
    assert row.error_dialog is not None
    assert row.error_dialog.startswith(
        "All 2 nuclei were skipped: 2 nucleus space. Last was BNL: 102400 GB must stay free at "
    )
    assert timedelta(minutes=29) < row.next_check - timezone.now() <= timedelta(minutes=30)
    assert task_broker.run().note == ""
    StorageEndpoint.objects.update(space_free_gb=500 * TB)
    choose()
    assert (status(made), task(made).error_dialog) == ("ready", None)


@pytest.fixture
def why(api: Callable[..., Any]) -> Callable[[int], Any]:
    """Why a task waits, while the agent runs."""

    def asked(made: int) -> Any:
        seen = {"period_s": 5, "last_ended_at": timezone.now(), "errors_in_a_row": 0, "paused": False}
        Agent.objects.update_or_create(name="task_broker", defaults=seen)
        return api().get(f"/api/v2/tasks/{made}/why/").json()

    return asked


def looked_at(made: int, ago: timedelta) -> None:
    """The task was looked at so long ago, and nothing has changed since."""
    Task.objects.filter(pk=made).update(next_check=F("next_check") - ago)
    GridVersion.objects.update(at=timezone.now() - timedelta(days=1))


def open_storage() -> None:
    StorageEndpoint.objects.update(space_free_gb=500 * TB)


def lower_threshold() -> None:
    configure("DISK_THRESHOLD", "0.5", "float")


@pytest.mark.parametrize("mend", [open_storage, lower_threshold])
def test_a_task_without_a_nucleus_is_looked_at_again_a_minute_later_once_the_grid_has_changed(
    mend: Callable[[], None], why: Callable[[int], Any]
) -> None:
    StorageEndpoint.objects.update(space_free_gb=1 * TB)
    made = fed()
    task_broker.run()
    looked_at(made, timedelta(minutes=2))
    assert task_broker.run().note == "", "nothing has changed: it waits its half hour"
    told = why(made)
    assert told["blocked_by"]["code"] == "nucleus_space" and told["position"]["next_pass"] > later(minutes=20)
    mend()
    told = why(made)
    assert told["blocked_by"]["advice"].startswith(
        "Wait for the next pass: the grid has changed since this decision; then "
    )
    assert told["position"]["next_pass"] < later(minutes=1)
    assert task_broker.run().items == 1 and status(made) == "ready"


def test_a_change_of_the_grid_right_after_a_look_is_seen_when_a_minute_is_over() -> None:
    StorageEndpoint.objects.update(space_free_gb=1 * TB)
    made = fed()
    task_broker.run()
    open_storage()
    assert task_broker.run().note == ""
    Task.objects.filter(pk=made).update(next_check=F("next_check") - timedelta(minutes=1))
    assert task_broker.run().items == 1


@pytest.mark.parametrize(("before_s", "items"), [(0.5, 1), (2.0, 0)])
def test_a_change_that_was_not_yet_to_be_seen_at_the_moment_of_a_look_is_seen_a_minute_later(
    before_s: float, items: int
) -> None:
    StorageEndpoint.objects.update(space_free_gb=1 * TB)
    made = fed()
    task_broker.run()
    open_storage()
    Task.objects.filter(pk=made).update(next_check=F("next_check") - timedelta(minutes=1))
    looked = task(made).next_check - timedelta(minutes=30)
    GridVersion.objects.update(at=looked - timedelta(seconds=before_s))
    assert nucleus_waits.next_look(task(made)) == looked + timedelta(minutes=1 if items else 30)
    assert task_broker.run().items == items


def test_a_change_of_the_grid_while_a_pass_decides_is_seen_when_a_minute_is_over() -> None:
    StorageEndpoint.objects.update(space_free_gb=1 * TB)
    made = fed()

    def draws() -> float:
        open_storage()
        return 0.0

    task_broker.run(draw=draws)
    assert status(made) == "assigning"
    Task.objects.filter(pk=made).update(next_check=F("next_check") - timedelta(minutes=1))
    GridVersion.objects.update(at=F("at") - timedelta(minutes=1))
    assert task_broker.run().items == 1


def test_a_pass_of_the_task_broker_decides_by_the_configuration_that_holds() -> None:
    StorageEndpoint.objects.update(space_free_gb=50 * TB)
    made = fed()
    configured.configuration()
    GdpConfig.objects.create(app="jedi", component="taskbrokerage", key="DISK_THRESHOLD", value="20", type="float")
    task_broker.run()
    assert status(made) == "ready", "another process has lowered the threshold a moment ago"


def split_input() -> int:
    """A task whose input is complete nowhere, which was looked at some minutes ago."""
    add_dataset("lab.in", 4, events=100)
    CatalogueFile.objects.filter(lfn="lab.in.00000").update(endpoint="CERN_DATADISK")
    made = fed()
    task_broker.run()
    looked_at(made, timedelta(minutes=10))
    assert replicas.run().items == 0 and task_broker.run().note == "", "nothing has changed"
    return made


def test_a_new_copy_of_an_input_ends_the_wait_of_who_reads_it(why: Callable[[int], Any]) -> None:
    made = split_input()
    CatalogueFile.objects.update(endpoint="CERN_DATADISK")
    readers.wake_readers(["lab.other"])
    assert replicas.run().items == 0
    readers.wake_readers(["lab.in"])
    assert Agent.objects.get(name="replicas").due_at <= timezone.now()
    assert (replicas.run().items, replicas.run().items) == (1, 0)
    assert why(made)["position"]["next_pass"] < later(minutes=1)
    assert task_broker.run().items == 1 and task(made).nucleus == "CERN"


def test_a_copy_that_grows_while_a_task_is_looked_at_is_seen_a_minute_later() -> None:
    made = split_input()
    Task.objects.filter(pk=made).update(next_check=timezone.now())

    def draws() -> float:
        CatalogueFile.objects.update(endpoint="CERN_DATADISK")
        locality.ask(["lab.in"], timezone.now())
        return 0.0

    task_broker.run(draw=draws)
    assert timedelta(seconds=30) < task(made).next_check - timezone.now() <= timedelta(minutes=1)
    open_storage()
    assert task_broker.run().note == "", "a change of the grid makes it no sooner"
    locality.ask(["lab.in"], timezone.now())
    choose()
    assert task(made).nucleus == "CERN"


def test_pilots_that_come_back_end_the_wait_of_all() -> None:
    now = timezone.now()
    PilotCalls.objects.create(site="ELSEWHERE", hour=now - timedelta(hours=4), get_job=1)
    QueueStatusLog.objects.update(at=now - timedelta(days=1))
    site_statistics.run(now)
    made = fed()
    task_broker.run()
    assert "none of their queues takes the jobs" in (task(made).error_dialog or "")
    looked_at(made, timedelta(minutes=10))
    site_statistics.run(now)
    assert task_broker.run().note == "", "still no pilot has called"
    PilotCalls.objects.create(site="SMALL_Q", hour=now, get_job=1, last_get_job=now)
    PilotCalls.objects.create(site="BNL_Q", hour=now, get_job=1, last_get_job=now)
    site_statistics.run(now)
    assert task_broker.run().items == 1 and task(made).nucleus == "BNL"
    at = GridVersion.objects.get(part=GridVersion.PILOTS).at
    site_statistics.run(now)
    assert GridVersion.objects.get(part=GridVersion.PILOTS).at == at, "they had called before"


def test_a_nucleus_whose_queues_are_offline_is_to_have_them_set_online(why: Callable[[int], Any]) -> None:
    Queue.objects.filter(site_name__in=("CERN", "BNL")).update(status="offline")
    made = fed()
    task_broker.run()
    told = why(made)["blocked_by"]
    assert (told["name"], told["code"]) == ("nucleus", "site_offline")
    assert told["sentence"] == (
        "All 2 nuclei were skipped: none of their queues takes the jobs. BNL_Q, CERN_Q: the site's status is offline."
    )
    assert "Have BNL_Q set online; then BNL takes its jobs." in told["advice"]


@pytest.mark.parametrize("by_cpu", [True, False])
def test_a_walltime_is_nothing_to_the_choice_of_a_nucleus_where_jobs_go_by_cpu_time(by_cpu: bool) -> None:
    """Else its advice to lower the walltime leads to the refusal of the CPU time."""
    configure("JOB_BROKER_managed", "production", "str", "brokerage", "lab")
    Queue.objects.update(max_walltime_s=3600)
    made = fed(walltime=400_000)
    if not by_cpu:
        Task.objects.update(cpu_time=None, cpu_time_unit=None)
    choose()
    assert bool(task(made).nucleus) is by_cpu


@pytest.mark.parametrize("named", ["CERN_Q", "SMALL_Q"])
def test_a_task_that_names_a_queue_and_gets_no_nucleus_is_told_of_that_queue_and_its_advice_brings_jobs(
    named: str, why: Callable[[int], Any]
) -> None:
    configure("JOB_BROKER_managed", "production", "str", "brokerage", "lab")
    Queue.objects.update(max_memory_mb=500)
    Queue.objects.filter(pk=named).update(max_memory_mb=900)
    made = fed(ramCount=4000, ramCountUnit="MB", includedSite=[named])
    task_broker.run()
    told = why(made)["blocked_by"]
    assert (told["name"], told["code"]) == ("nucleus", "low_memory")
    near = " (the nearest is BNL_Q: needs 3600 MB, the site gives 500 MB)" if named == "SMALL_Q" else ""
    assert told["sentence"] == (
        f"All 2 nuclei were skipped: none of their queues takes the jobs{near}. "
        f"{named}, the only site that the task may use, was skipped: needs 3600 MB, the site gives 900 MB."
    )
    most = 1000 if named == "CERN_Q" else 555
    advice = f"Ask for {most} MB of memory at most (ramCount; now 4000); then {named} takes its jobs."
    assert told["advice"].startswith(advice)
    parameter_changes.change_attributes(made, {"ramCount": most}, by="ada", reason="as advised")
    choose()
    agents_turn()
    assert {job.site for job in jobs(made)} == {named}


@pytest.mark.parametrize(
    ("named", "helps"),
    [([], {"BNL_Q": 500, "CERN_Q": 500}), (["CERN_Q"], {"CERN_Q": 500}), (["SMALL_Q"], {})],
    ids=["none", "of a nucleus", "of no nucleus"],
)
def test_the_page_of_a_site_proposes_the_time_limit_that_lets_a_task_have_a_nucleus_and_its_jobs(
    named: list[str], helps: dict[str, int]
) -> None:
    configure("JOB_BROKER_managed", "production", "str", "brokerage", "lab")
    Queue.objects.update(max_walltime_s=60)
    made = fed(walltime=500, includedSite=named) if named else fed(walltime=500)
    Task.objects.update(cpu_time=None, cpu_time_unit=None)
    task_broker.run()
    assert status(made) == "assigning"
    pages = {name: why_site(Queue.objects.get(pk=name)) for name in ("BNL_Q", "CERN_Q", "SMALL_Q")}
    refused = {name for name, page in pages.items() if page["skipped_for"]}
    assert refused == set(named or ("BNL_Q", "CERN_Q"))
    for name in refused:
        assert [one["code"] for one in pages[name]["reasons"]] == ["short_walltime"]
    found = {name: page["settings"][0]["value"] for name, page in pages.items() if page["settings"]}
    assert found == helps
    for name, limit in found.items():
        Queue.objects.filter(pk=name).update(max_walltime_s=limit)
    choose()
    agents_turn()
    sites = {job.site for job in jobs(made)}
    assert sites <= set(found) and bool(sites) is bool(helps)


def later(**after: int) -> str:
    return (timezone.now() + timedelta(**after)).isoformat()


def test_the_threshold_of_space_is_that_of_the_tasks_share() -> None:
    StorageEndpoint.objects.update(space_free_gb=50 * TB)
    configure("DISK_THRESHOLD_MC", "20", "float")
    made = fed(gshare="MC")
    Task.objects.filter(pk=made).update(gshare="MC")
    choose()
    assert status(made) == "ready"


def test_work_that_a_pass_assigns_counts_for_the_next_task() -> None:
    first, second = fed(name="lab.one"), fed(name="lab.two")
    choose()
    assert {task(first).nucleus, task(second).nucleus} == {"BNL", "CERN"}


def test_remaining_work_is_that_of_unfinished_tasks_by_nucleus_group_and_priority(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    resource = WorkQueue.objects.create(name="gpu", type="managed", vo="lab", function="Resource")
    usual = {"vo": "lab", "prod_source_label": "managed", "nucleus": "CERN", "gshare": "MC", "current_priority": 500}

    def one(events: int = 1000, used: int = 0, **more: Any) -> None:
        row = make_task(**{**usual, **more})
        make_dataset(
            row,
            files=10,
            files_to_be_used=10,
            files_used=5,
            files_finished=used // 100,
            events=events,
            events_used=used,
        )

    one(used=400, cpu_time=10)
    one(cpu_time=5000, cpu_time_unit="mHS06sPerEvent")
    one(current_priority=700)
    one(work_queue=resource, cpu_time=1)
    one(gshare=None, cpu_time=2, nucleus="BNL", current_priority=None, task_priority=3, status="pending")
    one(used=1000, cpu_time=10)
    for skipped in ({"status": "done"}, {"vo": "other"}, {"prod_source_label": "test"}, {"nucleus": None}):
        one(cpu_time=9, **skipped)
    found = nuclei.remaining_work("lab", "managed")
    assert dict(found.portions) == {
        "BNL": (("queue ", 3, 2000.0),),
        "CERN": (("queue gpu", 500, 1000.0), ("share MC", 500, 11000.0), ("share MC", 700, 300000.0)),
    }
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jedi_datasets")
        cursor.execute("DELETE FROM jedi_tasks")


def test_a_nucleus_that_the_task_names_is_taken_as_it_is() -> None:
    StorageEndpoint.objects.update(space_free_gb=0)
    made = fed(nucleus="CERN")
    assert status(made) == "assigning"
    choose()
    assert (status(made), places(made)) == ("ready", {("nucleus:CERN", "dst:CERN_DATADISK")})


def test_a_task_goes_where_its_input_is() -> None:
    add_dataset("lab.in", 120, events=100)
    CatalogueFile.objects.update(endpoint="CERN_DATADISK")
    made = fed()
    choose(0.0)
    assert task(made).nucleus == "CERN"
    kept = VerdictRecord.objects.get(task_id=made, kind="task")
    assert kept.skipped == [
        ["BNL", "nucleus_input_files", "12 of 120 input files must be there (10 %), 0 are", [12.0, 0, 10.0, 120]]
    ]


def test_a_task_whose_input_is_nowhere_complete_waits_with_the_name_of_the_dataset() -> None:
    add_dataset("lab.in", 4, events=100)
    CatalogueFile.objects.filter(lfn="lab.in.00000").update(endpoint="CERN_DATADISK")
    made = fed()
    choose()
    assert status(made) == "assigning"
    assert "lab.in has 2 known replicas, none is complete" in (task(made).error_dialog or "")


def test_tasks_of_other_kinds_and_of_a_cloud_get_no_nucleus() -> None:
    add_dataset("lab.in", 4)
    user = submit(parameters("lab.user", reads("lab.in")))
    clouded = submit(managed("lab.cloud", cloud="US"))
    refiner.run()
    feeder.run()
    assert (status(user), status(clouded)) == ("ready", "ready")


@pytest.mark.parametrize("more", [{}, {"cloud": "WORLD"}, {"cloud": "US"}, {"workingGroup": "beauty"}, {"vo": "wlcg"}])
def test_a_nucleus_that_a_task_names_gathers_its_outputs_whatever_its_kind_and_cloud(
    more: dict[str, Any], why: Callable[[int], Any]
) -> None:
    Queue.objects.update(cloud="US")
    add_dataset("lab.in", 4)
    made = submit(parameters("lab.user", reads("lab.in"), nucleus="CERN", site="SMALL_Q", **more))
    refiner.run()
    feeder.run()
    choose()
    assert (status(made), places(made)) == ("ready", {("nucleus:CERN", "dst:CERN_DATADISK")})
    assert gate_of(why(made)) == "its outputs are gathered at CERN"
    agents_turn()
    assert set(JobFile.objects.exclude(type="input").values_list("destination_se", flat=True)) == {"CERN_DATADISK"}


def test_the_gate_says_when_the_nucleus_of_a_task_gathers_nothing(why: Callable[[int], Any]) -> None:
    add_dataset("lab.in", 4)
    stays = fed(name="lab.stays", nucleus="CERN", stayOutputOnSite=True)
    named = fed(name="lab.named", nucleus="CERN")
    choose()
    Dataset.objects.filter(task_id=named).exclude(destination=None).update(destination="BNL_DATADISK")
    assert gate_of(why(stays)) == "CERN gathers none of its outputs: they stay where they are made (stayOutputOnSite)"
    assert gate_of(why(named)) == (
        "CERN gathers none of its outputs: they go to the destination that the task names, else to the storage to which the "
        "queue writes that makes them"
    )


def gate_of(said: Any) -> str:
    return str(next(gate["sentence"] for gate in said["gates"] if gate["name"] == "nucleus"))


def test_an_installation_without_nuclei_does_not_wait_for_one() -> None:
    Site.objects.update(role="satellite")
    made = fed()
    assert status(made) == "ready"
    settle()
    assert set(JobFile.objects.exclude(type="input").values_list("destination_se", flat=True)) == {"BNL_DATADISK"}


def test_a_child_of_a_chain_follows_its_parent() -> None:
    Queue.objects.filter(site_name__in=("CERN", "BNL")).update(catchall="bareNucleus=allow")
    parent = fed(name="lab.p", fullChain="require")
    choose(0.99)
    assert task(parent).nucleus == "CERN"
    child = fed(name="lab.c", fullChain="capable")
    Task.objects.filter(pk=child).update(parent_id=parent)
    choose(0.0)
    assert task(child).nucleus == "CERN"


def test_a_reassigned_task_goes_on_at_another_nucleus_where_it_was() -> None:
    made = fed(files=8)
    choose()
    agents_turn()
    assert (status(made), task(made).nucleus) == ("running", "BNL")
    command(made, "reassign", parameters={"nucleus": "CERN"})
    settle()
    row = task(made)
    assert (row.status, row.nucleus, row.old_status) == ("running", "CERN", None)
    assert places(made) == {("nucleus:CERN", "dst:CERN_DATADISK")}
    new = [job for job in jobs(made) if job.status == "activated"]
    assert new and {job.nucleus for job in new} == {"CERN"}


def test_a_task_given_back_to_the_world_has_its_nucleus_chosen_anew() -> None:
    made = fed()
    choose()
    StorageEndpoint.objects.filter(name="BNL_DATADISK").update(space_free_gb=0)
    command(made, "reassign", parameters={"cloud": "WORLD"})
    settle()
    assert task(made).nucleus == "CERN"


def test_a_task_that_runs_again_keeps_the_nucleus_where_its_outputs_are() -> None:
    made = fed()
    choose(0.0)
    before = places(made)
    command(made, "kill")
    drive(Pilot(site="CERN_Q"))
    assert (status(made), task(made).nucleus) == ("aborted", "BNL")
    command(made, "incexec", parameters={"changes": {"nFilesPerJob": 1}})
    refiner.run()
    feeder.run()
    choose(0.99)
    settle()
    assert (task(made).nucleus, places(made)) == ("BNL", before)
    assert {job.nucleus for job in jobs(made) if job.status == "activated"} == {"BNL"}
    command(made, "kill")
    drive(Pilot(site="CERN_Q"))
    command(made, "incexec", parameters={"changes": {"cloud": "WORLD"}})
    refiner.run()
    feeder.run()
    choose(0.99)
    assert (task(made).nucleus, places(made)) == ("CERN", {("nucleus:CERN", "dst:CERN_DATADISK")})


def test_what_was_asked_of_the_storage_is_kept_through_a_reassignment() -> None:
    made = fed()
    Dataset.objects.filter(task_id=made, type="output").update(storage_token="ATLASDATADISK")
    choose()
    assert dataset(made, "output").storage_token == "dst:BNL_DATADISK/ATLASDATADISK"
    nuclei.forget_places(made)
    assert dataset(made, "output").storage_token == "ATLASDATADISK"
    assert dataset(made, "log").storage_token is None
    assert places(made) == {(None, "ATLASDATADISK"), (None, None)}


def test_outputs_that_name_their_endpoint_keep_it() -> None:
    made = fed()
    Dataset.objects.filter(task_id=made, type="log").update(destination="LOG_DISK")
    choose()
    assert places(made) == {("nucleus:BNL", "dst:BNL_DATADISK"), ("LOG_DISK", None)}


def test_a_paused_task_that_waits_for_its_nucleus_gets_one_when_it_is_resumed() -> None:
    made = fed()
    command(made, "pause")
    choose()
    assert status(made) == "paused"
    command(made, "resume")
    assert status(made) == "assigning"
    choose()
    assert status(made) == "ready"


def test_a_broker_that_lost_its_claim_writes_nothing() -> None:
    made = fed()

    def taken_over() -> float:
        Task.objects.filter(pk=made).update(fence=F("fence") + 1, locked_by=None)
        return 0.5

    wake()
    task_broker.run(draw=taken_over)
    assert (status(made), task(made).nucleus, places(made)) == ("assigning", None, {(None, None)})
    assert not VerdictRecord.objects.filter(task_id=made, kind="task").exists()
    choose()
    assert status(made) == "ready"


def test_brokers_that_run_at_once_give_each_task_one_nucleus() -> None:
    made = [fed(name=f"lab.t{number}") for number in range(6)]
    wake()
    together(*[lambda: task_broker.run(limit=3)] * 4)
    choose()
    assert {status(one) for one in made} == {"ready"}
    assert TaskStatusLog.objects.filter(task_id__in=made, status="ready").count() == 6
