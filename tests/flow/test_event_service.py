"""Tasks of event service: their jobs have jobsets, whose ranges consumers take."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue
from events_app.consumers import storing
from events_app.lifecycle.range_handout import take
from events_app.models import Event
from events_app.rules.event_states import EventStatus
from jedisite.database.sql import hot_cursor
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.generation.generation_pass import read_pass
from tasks_app.generation.rules.consumers import turns
from tasks_app.generation.task_turns import take_turn
from tasks_app.generation.throttle import Throttle
from tasks_app.generation.turn_facts import read_turn
from tasks_app.lifecycle import claims
from tasks_app.models import (
    CatalogueFile,
    Dataset,
    File,
    FileRetry,
    Job,
    JobOutputReport,
    JobParams,
    JobStatusLog,
    Task,
)
from tasks_app.params.faults import ParamErrors
from tasks_app.params.schema import parse
from tasks_app.scouts.scout_sample import samples_of
from tasks_app.submission.command_queue import CommandRefusedError
from tasks_app.submission.known_names import check_inputs
from tests.flow.balance import assert_books_balance
from tests.flow.driving import (
    add_dataset,
    add_files,
    add_queue,
    jobs,
    look_again,
    parameters,
    reads,
    settle,
    status,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Pilot
from tests.flow.test_commands import command

pytestmark = pytest.mark.usefixtures("tables")
MERGE = {"transPath": "run_command", "jobParameters": "--out=${OUTPUT0}"}
DONE, DISCARDED, CANCELLED, READY = (
    int(EventStatus.DONE),
    int(EventStatus.DISCARDED),
    int(EventStatus.CANCELLED),
    int(EventStatus.READY),
)


@pytest.fixture(autouse=True)
def takes_events(tables: None) -> None:
    Queue.objects.update(job_seed="all")


def by_ranges(name: str = "lab.t", **more: Any) -> dict[str, Any]:
    given = {"nFilesPerJob": 1, "nEventsPerWorker": 10, "nEventsPerInputFile": 25, **more}
    return parameters(name, reads("lab.in"), **given)


def ready(params: dict[str, Any]) -> int:
    made = submit(params)
    refiner.run()
    feeder.run()
    assert status(made) == "ready", task(made).error_dialog
    return made


def generate() -> None:
    wake()
    job_generator.run()


def blocks(task_id: int) -> list[tuple[Any, ...]]:
    """First and last event, length, owner, attempts and state of each block, by file."""
    columns = ("min_event", "max_event", "events_per_range", "job_id", "attempt", "status")
    return list(Event.objects.filter(task_id=task_id).order_by("file_id", "min_event", "id").values_list(*columns))


def give_back(job: Job) -> None:
    """A job has failed, and its files are ready again."""
    Job.objects.filter(pk=job.id).update(status="failed")
    files = list(File.objects.filter(job_id=job.id, type="input"))
    for file in files:
        FileRetry.objects.create(id=file.id, task_id=file.task_id, dataset_id=file.dataset_id)
    File.objects.filter(pk__in=[file.id for file in files]).update(status="ready", attempt=1)
    Dataset.objects.filter(pk=files[0].dataset_id).update(files_used=0)


def test_each_job_has_a_jobset_with_the_ranges_of_its_file() -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges())
    generate()
    first, second = jobs(made)
    assert {(j.event_service, j.events, j.attempt, j.max_attempt, j.status) for j in (first, second)} == {
        (1, None, 1, 4, "activated")
    }
    assert len({first.id, second.id, first.jobset_id, second.jobset_id}) == 4
    assert blocks(made) == [(1, 25, 10, first.jobset_id, 10, 0), (1, 25, 10, second.jobset_id, 10, 0)]
    assert set(Event.objects.values_list("event_offset", "dataset_id")) == {
        (job.jobset_id, Dataset.objects.get(task_id=made, type="input").id) for job in (first, second)
    }


def test_a_consumer_is_handed_its_ranges() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(esmergeSpec=MERGE))
    generate()
    (job,) = Pilot().fetch(1)
    step = "<PANDA_ESMERGE_TRF>run_command</PANDA_ESMERGE_TRF><PANDA_ESMERGE_JOBP>--out=lab.t.000001.root</PANDA_ESMERGE_JOBP>"
    assert JobParams.objects.get(pk=job["PandaID"]).params.endswith(step)
    assert "--in=lab.in.00000" in job["jobPars"] and "MERGE" not in job["jobPars"], "the step is for the merge job"
    with hot_cursor() as cursor:
        taken = take(cursor, made, 2, "pandaid = %(job)s", {"job": job["PandaID"]})
    assert [(one.block.first, one.block.last, one.lfn) for one in taken.blocks] == [(1, 20, "lab.in.00000")]
    assert taken.more


@pytest.mark.parametrize(("more", "second"), [({}, (26, 50)), ({"inFilePosEvtNum": True}, (1, 25))])
def test_events_count_over_the_files_of_a_job_or_inside_of_each(more: dict[str, Any], second: tuple[int, int]) -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges(nFilesPerJob=2, maxAttemptES=3, maxAttemptEsJob=5, transPath="reco.py", **more))
    generate()
    (job,) = jobs(made)
    assert [one[:2] for one in blocks(made)] == [(1, 25), second]
    assert {one[3:5] for one in blocks(made)} == {(job.jobset_id, 3)} and job.max_attempt == 6


@pytest.mark.parametrize("kind", [{"fineGrainedProc": True, "nEventsPerWorker": None}, {"nEventsPerWorker": 10}])
@pytest.mark.parametrize("program", ["run_command", None])
def test_events_count_inside_of_the_file_that_our_own_program_gets(kind: dict[str, Any], program: str | None) -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges(nFilesPerJob=None, transPath=program, **kind))
    generate()
    assert [one[:2] for one in blocks(made)] == [(1, 25), (1, 25)]
    assert "IF=1" in str(task(made).split_rule)


def test_records_of_events_are_ranges_of_their_part_of_the_file() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(nFilesPerJob=None, nEventsPerJob=20))
    generate()
    assert [one[:3] for one in blocks(made)] == [(1, 20, 10), (21, 25, 10)]


@pytest.mark.parametrize(
    ("keeps", "wanted"),
    [
        (False, [(1, 10, DISCARDED), (1, 25, READY), (11, 20, CANCELLED), (21, 25, CANCELLED)]),
        (True, [(1, 10, DONE), (11, 20, CANCELLED), (11, 25, READY), (21, 25, CANCELLED)]),
    ],
)
def test_a_file_that_is_tried_again_gets_a_jobset_with_what_is_not_kept(
    keeps: bool, wanted: list[tuple[int, int, int]]
) -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(notDiscardEvents=keeps))
    generate()
    (first,) = jobs(made)
    process(made, first, done=[(1, 10)], open=[(11, 20), (21, 25)])
    give_back(first)
    generate()
    _, second = jobs(made)
    assert second.jobset_id != first.jobset_id and (second.attempt, second.max_attempt) == (2, 5)
    assert sorted((one[0], one[1], one[5]) for one in blocks(made)) == wanted
    assert {one[3] for one in blocks(made) if one[5] == READY} == {second.jobset_id}


def test_ranges_whose_output_could_not_be_read_are_made_again_and_others_are_kept() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(notDiscardEvents=True))
    generate()
    (first,) = jobs(made)
    process(made, first, done=[(1, 10), (11, 20), (21, 25)], open=[])
    Event.objects.filter(task_id=made, min_event=11).update(status=int(EventStatus.CORRUPTED))
    give_back(first)
    generate()
    _, second = jobs(made)
    assert [(one[0], one[3]) for one in blocks(made) if one[5] == READY] == [(11, second.jobset_id)]
    assert [one[0] for one in blocks(made) if one[5] == DONE] == [1, 21]


def process(task_id: int, job: Job, *, done: list[tuple[int, int]], open: list[tuple[int, int]]) -> None:
    """What a consumer has left: ranges that are done, and ranges that another has at work."""
    (row,) = Event.objects.filter(task_id=task_id)
    for first, last in (*done, *open):
        state = EventStatus.DONE if (first, last) in done else EventStatus.SENT
        row.pk, row.job_id, row.process_id, row.min_event, row.max_event = None, job.id, first, first, last
        row.status = int(state)
        row.save(force_insert=True)
    Event.objects.filter(task_id=task_id, job_id=job.jobset_id).delete()


def test_ranges_that_do_not_fit_the_new_ones_are_made_again() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(notDiscardEvents=True))
    generate()
    (first,) = jobs(made)
    process(made, first, done=[(1, 10)], open=[])
    give_back(first)
    Task.objects.filter(pk=made).update(split_rule=(task(made).split_rule or "").replace("ES=10", "ES=5"))
    generate()
    assert sorted((*one[:3], one[5]) for one in blocks(made)) == [(1, 10, 10, DISCARDED), (1, 25, 5, READY)]


def test_a_jobset_of_which_nothing_is_left_needs_no_pilot() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(notDiscardEvents=True))
    generate()
    (first,) = jobs(made)
    process(made, first, done=[(1, 25)], open=[])
    give_back(first)
    generate()
    _, second = jobs(made)
    assert (second.status, second.special_handling) == ("holding", "at")
    report = JobOutputReport.objects.get(pk=second.id)
    assert (report.task_id, report.status) == (made, "finished")
    assert [log.status for log in JobStatusLog.objects.filter(job_id=second.id)] == ["holding"]
    assert [(one[0], one[1], one[5]) for one in blocks(made)] == [(1, 25, DONE)]


def test_consumers_of_one_input_share_a_jobset_and_each_has_a_log() -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges(nEsConsumers=3))
    generate()
    found = jobs(made)
    assert sorted(Counter(job.jobset_id for job in found).values()) == [3, 3]
    assert {(job.event_service, job.status, job.attempt, job.max_attempt) for job in found} == {(1, "activated", 1, 4)}
    assert len(blocks(made)) == 2, "their ranges are made once"
    logs = Dataset.objects.get(task_id=made, type="log")
    assert (logs.files, logs.files_used) == (6, 6) == (File.objects.filter(dataset_id=logs.id).count(), 6)
    outputs = Dataset.objects.get(task_id=made, type="output")
    assert (outputs.files, File.objects.filter(dataset_id=outputs.id).count()) == (2, 2), "the first has the output"


def test_consumers_of_one_input_are_spread_over_queues() -> None:
    add_queue("SITE_B", job_seed="es")
    add_queue("SITE_C", job_seed="std")
    add_dataset("lab.in", 1)
    made = ready(by_ranges(nEsConsumers=3, nSitesPerJob=2))
    generate()
    found = jobs(made)
    assert sorted(job.site or "" for job in found) in (["SITE_A", "SITE_A", "SITE_B"], ["SITE_A", "SITE_B", "SITE_B"])
    assert len({job.jobset_id for job in found}) == 1


def test_consumers_count_at_the_queues_where_they_are() -> None:
    """Whoever comes next in the same pass sees how full each of the queues is."""
    assert (turns(5, 2), turns(1, 3), turns(2, 1)) == ([3, 2], [1, 0, 0], [2])
    add_queue("SITE_B", job_seed="es")
    add_dataset("lab.in", 4)
    made = ready(by_ranges(nEsConsumers=3, nSitesPerJob=2))
    wake()
    around = read_pass(Throttle(), "true", {})
    ((_, fence),) = claims.claim_tasks("test", ["ready"], 1)
    take_turn(task(made), fence, around, 100)
    counted = {name: site.queued for name, site in around.view.grid.sites.items()}
    assert counted == Counter(job.site for job in jobs(made)) and sum(counted.values()) == 12


def test_a_retry_can_discard_what_was_processed_and_only_of_events() -> None:
    add_dataset("lab.in", 1)
    made = ready(by_ranges(notDiscardEvents=True))
    generate()
    (first,) = jobs(made)
    process(made, first, done=[(1, 10)], open=[])
    give_back(first)
    use_up(made)
    assert command(made, "retry", parameters={"discard": True}).status == "done"
    assert [one[5] for one in blocks(made)] == [DISCARDED]
    add_dataset("lab.other", 1)
    plain = ready(parameters("lab.p", reads("lab.other"), nFilesPerJob=1))
    generate()
    use_up(plain)
    with pytest.raises(CommandRefusedError, match="has no event service: no events can be discarded"):
        command(plain, "retry", parameters={"discard": True})


def use_up(task_id: int) -> None:
    """The files of a task have no attempts left."""
    FileRetry.objects.all().delete()
    File.objects.filter(task_id=task_id, type="input").update(status="ready", attempt=1, max_attempt=1)
    Dataset.objects.filter(task_id=task_id, type="input").update(files_used=1, files_failed=1)


def test_the_time_of_a_job_is_divided_among_its_consumers() -> None:
    add_dataset("lab.in", 1)
    timed = {"cpuTime": 100, "cpuTimeUnit": "HS06sPerEvent", "nEventsPerInputFile": 60}
    tasks = {
        "plain": parameters("lab.p", reads("lab.in"), nFilesPerJob=1, **timed),
        "events": by_ranges("lab.t", **timed),
        "two consumers": by_ranges("lab.u", **timed, nEsConsumers=2, maxAttemptEsJob=4),
    }
    asked = {name: read_turn(task(ready(params)), 0, timezone.now()).needs.cpu_hs06s for name, params in tasks.items()}
    assert asked == {"plain": 6000, "events": 2000, "two consumers": 600}


def test_events_of_files_that_are_tried_again_can_be_discarded() -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges(notDiscardEvents=True))
    generate()
    first, _ = jobs(made)
    Event.objects.filter(task_id=made).update(status=DONE)
    give_back(first)
    storing.discard_events(task(made), False)
    assert {one[5] for one in blocks(made)} == {DONE}
    storing.discard_events(task(made), True)
    assert [one[5] for one in blocks(made)] == [DISCARDED, DONE], "the other file is not tried again"


KNOWS = {"nEventsPerInputFile": None, "useRealNumEvents": True}
FINE = {"nEventsPerWorker": None, "fineGrainedProc": True}


def refused(params: dict[str, Any]) -> dict[str, str]:
    """The fields that the door refuses, with its sentences."""
    with pytest.raises(ParamErrors) as caught:
        check_inputs(parse(params), "ada", None)
    return {error.field: error.message for error in caught.value.errors}


@pytest.mark.parametrize("kind", [{}, FINE])
def test_a_task_whose_files_have_no_number_of_events_is_refused_at_the_door(kind: dict[str, Any]) -> None:
    add_dataset("lab.in", 2)
    (said,) = refused(by_ranges(**KNOWS, **kind)).items()
    assert said[0].endswith(".dataset")
    assert "lab.in.00000 cannot be cut into ranges: how many events it has is not known; register the number" in said[1]


@pytest.mark.parametrize("kind", [{}, FINE])
def test_more_events_than_a_file_is_known_to_have_are_refused_with_its_name(kind: dict[str, Any]) -> None:
    add_dataset("lab.in", 1, events=30)
    add_files("lab.in", [1], events=20)
    said = refused(by_ranges(**kind))["nEventsPerInputFile"]
    assert "lab.in.00001 has 20 events, and nEventsPerInputFile says 25" in said
    ready(by_ranges(**{**kind, "nEventsPerInputFile": 20}))
    plain = parameters("lab.p", reads("lab.in"), nFilesPerJob=1, nEventsPerInputFile=25)
    check_inputs(parse(plain), "ada", None)  # only ranges need the events


@pytest.mark.parametrize(
    ("events", "more", "sentence"),
    [
        (None, KNOWS, "lab.in.00001 cannot be cut into ranges: how many events it has is not known"),
        (20, {}, "lab.in.00001 has 20 events, and nEventsPerInputFile says 25"),
    ],
)
def test_files_that_a_task_chooses_are_looked_at_when_they_are_fed(
    events: int | None, more: dict[str, Any], sentence: str
) -> None:
    """The first file has its events: whether another one is among those that are taken is not known at the door."""
    add_dataset("lab.in", 1, events=25)
    add_files("lab.in", [1], events=events)
    check_inputs(parse(by_ranges(nFiles=1, **more)), "ada", None)
    assert ready(by_ranges("lab.one", nFiles=1, **more))
    made = submit(by_ranges(nFiles=2, **more))
    refiner.run()
    feeder.run()
    assert status(made) == "tobroken" and sentence in (task(made).error_dialog or "")
    assert not File.objects.filter(task_id=made, type="input").exists()


def test_files_that_come_later_without_events_are_waited_for_with_a_sentence() -> None:
    add_dataset("lab.in", 1, events=25, open=True)
    made = submit(by_ranges(**KNOWS, runUntilClosed=True, nChunksToWait=1))
    refiner.run()
    feeder.run()
    assert status(made) == "ready"
    add_files("lab.in", [1])
    feed_again()
    assert "lab.in.00001 cannot be cut into ranges" in (task(made).error_dialog or "")
    CatalogueFile.objects.update(events=25)
    feed_again()
    assert File.objects.filter(task_id=made, type="input").count() == 2


def feed_again() -> None:
    wake()
    look_again()
    feeder.run()


def test_jobs_of_other_tasks_have_no_jobset_of_their_own() -> None:
    add_dataset("lab.in", 1)
    made = ready(parameters("lab.t", reads("lab.in"), nFilesPerJob=1, nEventsPerInputFile=25))
    generate()
    (job,) = jobs(made)
    assert (job.event_service, job.jobset_id, job.events, job.max_attempt) == (None, made, 25, 1)
    assert not Event.objects.exists()


@pytest.mark.parametrize(("seed", "number"), [("", 0), ("std", 0), ("es", 1), ("all", 1)])
def test_queues_that_are_not_set_up_for_events_get_no_consumers(seed: str, number: int) -> None:
    Queue.objects.update(job_seed=seed)
    add_dataset("lab.in", 1)
    made = ready(by_ranges())
    generate()
    assert len(jobs(made)) == number


def test_a_task_of_events_runs_from_its_ranges_to_its_merged_output() -> None:
    add_dataset("lab.in", 2)
    made = ready(by_ranges(nEsConsumers=2))
    generate()
    pilot = Pilot()
    while fetched := pilot.fetch(1):
        (job,) = fetched
        row = Job.objects.get(pk=job["PandaID"])
        if row.event_service == 1:
            with hot_cursor() as cursor:
                take(cursor, made, 10, "pandaid = %(job)s", {"job": row.id})
            Event.objects.filter(job_id=row.id, status=int(EventStatus.SENT)).update(
                status=int(EventStatus.FINISHED), objstore_id=12
            )
            Job.objects.filter(pk=row.id).update(events=25)
        pilot.end(job)
        settle()
    settle()
    assert status(made) == "done", task(made).error_dialog
    assert {one[5] for one in blocks(made)} == {int(EventStatus.MERGED)}
    kinds = Counter((job.event_service, job.status) for job in jobs(made))
    assert kinds[(2, "finished")] == 2 and kinds[(1, "finished")] == 2
    assert_books_balance()
    with hot_cursor() as cursor:
        measured = samples_of(cursor, made)
    assert [(one.events, one.event_service) for one in measured] == [(25, True)] * 2, "consumers, and no merge jobs"
