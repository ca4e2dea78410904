import json
from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone

from brokerage_app.brokers import production_job
from brokerage_app.cases.analysis_settings import AnalysisFacts, Ended
from brokerage_app.cases.case import grid_of
from brokerage_app.labs.made_up_grid import synthetic_grid, synthetic_needs
from brokerage_app.models import GridSnapshot, VerdictCount, VerdictHour, VerdictMinute, VerdictRecord
from brokerage_app.policy.classes import TaskClass
from brokerage_app.verdicts import records
from brokerage_app.verdicts.records import Decided, Snapshots, fold, forget_old, keep
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView, Slots, UserJobs
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Link, Nucleus
from brokerage_app.vocabulary.stored import as_json, from_json, needs_of, pack, unpack
from brokerage_app.vocabulary.verdict import Choice, Verdict

TASK = 20_000_001
LOW = Skip("B", "low_memory", "needs {} MB, the site gives {} MB", (4000, 2000))
OFF = Skip("C", "site_offline", "the site's status is {}", ("offline",))
GOOD = Verdict((Choice("A", 2.0, (("running + 1", 4.0), ("queued", 0.5))),), (LOW, OFF))
BAD = Verdict((), (LOW, OFF))


def counts() -> dict[tuple[str, str], int]:
    return {(row.site, row.code): row.decisions for row in VerdictCount.objects.all()}


def test_snapshot_and_needs_come_back_as_they_were() -> None:
    grid = Grid(
        sites={
            "A": SiteView(
                "A",
                jobs={"X": {"SCORE": Counts(1, 2)}},
                slots=(Slots(None, "SCORE", 3),),
                last_start_s=3.5,
                users={"X": {"ada": UserJobs(1, 2)}},
                switches={"gpu": ""},
            )
        },
        endpoints={"SE": Endpoint("SE", states={"read_lan": "OFF"})},
        nuclei={"N": Nucleus("N", queues=("A",))},
        links={"A": {"N": Link(3, {"Express": 1}, mbps_1d=2.5)}},
        taken_at=timezone.now(),
    )
    assert unpack(pack(grid)) == grid
    needs = TaskNeeds(inputs=(InputData("d", 3, replicas={"SE": Replica(1, 2.0)}),), t1_weight=-1, cores=None)
    assert needs_of(as_json(needs)) == needs


def test_a_packed_grid_gives_the_same_verdicts() -> None:
    chance = Random(1)
    grid = synthetic_grid(40, chance)
    again = unpack(pack(grid))
    assert again == grid
    for _ in range(10):
        needs = synthetic_needs(chance, grid)
        assert production_job.broker(needs_of(as_json(needs)), again) == production_job.broker(needs, grid)


def test_what_the_broker_of_analysis_knew_comes_back_as_it_was() -> None:
    facts = AnalysisFacts(who="the user ada", task_class=TaskClass.A, ended={"A": Ended(1, 2, 3)})
    assert from_json(AnalysisFacts, json.loads(json.dumps(as_json(facts)))) == facts


def test_json_that_does_not_fit_names_the_field() -> None:
    with pytest.raises(BaseException) as caught:
        from_json(TaskNeeds, {"memory": 3})
    assert "memory" in "".join(map(str, getattr(caught.value, "exceptions", [caught.value])))


@pytest.mark.django_db
def test_the_latest_three_verdicts_are_kept_in_full_and_those_before_by_reason() -> None:
    first = keep(Decided(TASK, GOOD, TaskNeeds(memory_mb=4000, share="X")))
    second = keep(Decided(TASK, BAD, TaskNeeds(memory_mb=4000, share="X")))
    assert second > first
    keep(Decided(TASK, GOOD))
    assert VerdictRecord.objects.get(pk=first).skipped != []
    keep(Decided(TASK, Verdict((), (OFF,))))
    latest, old = VerdictRecord.objects.get(pk=second), VerdictRecord.objects.get(pk=first)
    assert latest.skipped == [
        ["B", "low_memory", "needs 4000 MB, the site gives 2000 MB", [4000, 2000]],
        ["C", "site_offline", "the site's status is offline", ["offline"]],
    ]
    assert (latest.code, latest.share, latest.stopped) == ("low_memory", "X", None)
    assert old.skipped == [] and old.reasons == {"low_memory": ["B"], "site_offline": ["C"]}
    assert old.chosen == [["A", 2.0, {"running + 1": 4.0, "queued": 0.5}]]
    assert needs_of(old.needs).memory_mb == 4000


@pytest.mark.django_db
def test_the_same_outcome_again_is_the_same_row_with_the_numbers_of_now() -> None:
    first = keep(Decided(TASK, BAD))
    again = Verdict((), (Skip("B", "low_memory", "needs {} MB, the site gives {} MB", (4000, 3000)), OFF))
    assert keep(Decided(TASK, again)) == first
    record = VerdictRecord.objects.get()
    assert record.repeats == 2
    assert record.skipped[0][3] == [4000, 3000]
    assert keep(Decided(TASK, BAD, kind="task")) != first
    assert keep(Decided(TASK + 1, BAD)) != first


@pytest.mark.django_db
def test_a_decision_that_was_stopped_before_any_site_says_by_what() -> None:
    keep(Decided(TASK, Verdict(stopped=Skip("", "throttled_queued", "{} jobs are queued, {} are wanted", (90, 80)))))
    record = VerdictRecord.objects.get()
    assert record.stopped == ["throttled_queued", "90 jobs are queued, 80 are wanted"]
    assert record.code == "throttled_queued"
    fold()
    assert counts() == {("", "throttled_queued"): 1}


@pytest.mark.django_db
def test_each_decision_is_counted_once_for_each_site() -> None:
    for verdict in (GOOD, BAD, BAD, BAD):
        keep(Decided(TASK, verdict, TaskNeeds(share="X")))
    assert fold() == 2
    expected = {("A", ""): 1, ("B", "low_memory"): 4, ("C", "site_offline"): 4}
    assert counts() == expected
    assert fold() == 0 and counts() == expected
    assert {(row.site, row.code): row.decisions for row in VerdictHour.objects.all()} == expected
    assert {row.code: row.decisions for row in VerdictMinute.objects.all()} == {"": 1, "low_memory": 3}
    keep(Decided(TASK, BAD, TaskNeeds(share="X")))
    assert fold(1) == 1
    assert counts() == {("A", ""): 1, ("B", "low_memory"): 5, ("C", "site_offline"): 5}


@pytest.mark.django_db
def test_one_snapshot_serves_the_verdicts_of_a_minute() -> None:
    grid = grid_of([SiteView("A", is_parent=True), SiteView("A/LOMEM", parent="A")])
    one, other = Snapshots(grid), Snapshots(grid)
    keep(Decided(TASK, GOOD, snapshots=one))
    keep(Decided(TASK + 1, GOOD, snapshots=one))
    keep(Decided(TASK + 2, GOOD, snapshots=other))
    assert GridSnapshot.objects.get().sites == 1, "a queue with its parts is one"
    assert unpack(bytes(GridSnapshot.objects.get().body)) == grid
    GridSnapshot.objects.update(at=timezone.now() - records.SNAPSHOT_EVERY)
    keep(Decided(TASK + 3, GOOD, snapshots=Snapshots(grid)))
    assert GridSnapshot.objects.count() == 2


@pytest.mark.django_db
def test_what_is_old_is_forgotten_but_for_the_last_word_on_a_task() -> None:
    old, last = keep(Decided(TASK, GOOD, TaskNeeds())), keep(Decided(TASK, BAD, TaskNeeds()))
    VerdictRecord.objects.update(at=timezone.now() - records.VERDICTS_KEPT - timedelta(minutes=1))
    forget_old()
    assert VerdictRecord.objects.filter(pk=old).exists(), "it is not counted yet"
    fold()
    VerdictCount.objects.create(
        day=timezone.now() - records.COUNTS_KEPT - timedelta(days=2),
        kind="job",
        share="",
        site="Z",
        code="",
        decisions=1,
    )
    GridSnapshot.objects.create(sites=0, body=pack(Grid()), at=timezone.now() - records.SNAPSHOTS_KEPT)
    old_hours, old_minutes = VerdictHour.objects.all(), VerdictMinute.objects.all()
    gone = 3 + old_hours.count() + old_minutes.count()
    assert forget_old() == gone and not old_hours.exists() and not old_minutes.exists()
    record = VerdictRecord.objects.get()
    assert (record.id, record.needs) == (last, None)
    assert not VerdictCount.objects.filter(site="Z").exists() and not GridSnapshot.objects.exists()
