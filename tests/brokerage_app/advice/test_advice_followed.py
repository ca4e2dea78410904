"""Advice on a setting of a queue is in words of what can be set: done as it says, the queue takes the jobs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.advice.remedies import helping
from brokerage_app.advice.whatif import Conditions
from brokerage_app.brokers.choosing import ANALYSIS, GENERIC, PRODUCTION, decide
from brokerage_app.grid.repository import forget, load_grid
from brokerage_app.models import Queue, QueueActivity, ResourceType, StorageEndpoint
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.verdict import Verdict

pytestmark = pytest.mark.django_db
NEEDS = TaskNeeds(cores=1, memory_mb=9000, share="MC", label="user", vo="lab", included_sites=("MINE",))
SETTING = re.compile(r"Have the .*? of MINE changed from (\d+) to (\d+); then MINE takes its jobs\.")


def configured(broker: str) -> Any:
    return DEFAULTS.having(Row("jedi", "brokerage", "JOB_BROKER_user", broker, "str"))


@pytest.fixture
def grid() -> Any:
    """A queue that cuts its slots to size, one that describes each core, and one of one size."""
    ResourceType.objects.all().delete()
    for position, row in enumerate(DEFAULT_TABLE):
        ResourceType.objects.create(
            position=position,
            name=row.name,
            min_cores=row.min_cores,
            max_cores=row.max_cores,
            min_ram_per_core_mb=row.min_memory_per_core_mb,
            max_ram_per_core_mb=row.max_memory_per_core_mb,
        )

    def made(**values: Any) -> None:
        StorageEndpoint.objects.create(name="SE_MINE", site_name="MINE", space_free_gb=9000.0)
        Queue.objects.create(
            **{
                "name": "MINE",
                "site_name": "MINE",
                "storage_id": "SE_MINE",
                "core_count": 8,
                "core_power": 10.0,
                "capability": "ucore",
                "status": "online",
                "releases": ["ANY"],
                **values,
            }
        )
        QueueActivity.objects.create(site="MINE", pilots_3h=9, last_start=timezone.now())

    forget()
    return made


def asking(**more: Any) -> TaskNeeds:
    return replace(NEEDS, **more)


def decided(broker: str, needs: TaskNeeds) -> tuple[Verdict, list[str]]:
    """The verdict on the grid of the database, and the advice."""
    world, configuration = load_grid(timezone.now()), configured(broker)
    found = decide(needs, world, configuration)
    if found.blocked is None:
        return found, []
    return found, [one.sentence for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
@pytest.mark.parametrize(
    ("column", "values", "needs"),
    [
        ("max_memory_mb", {"max_memory_mb": 1000}, {}),
        ("max_memory_mb", {"max_memory_mb": 16_000, "core_count": 8}, {"memory_mb": 64_000}),
        ("max_memory_mb", {"max_memory_mb": 1000, "params": {"per_core_attr": True}}, {}),
        ("max_memory_mb", {"max_memory_mb": 1000}, {"cores": 8, "memory_mb": 3000, "memory_per_core": True}),
        ("max_memory_mb", {"max_memory_mb": 1000, "capability": "score", "core_count": 1}, {}),
        ("work_dir_mb", {"work_dir_mb": 4000, "max_memory_mb": 128_000}, {"disk_mb": 9000, "work_disk": 9000}),
        ("max_walltime_s", {"max_walltime_s": 2000, "max_memory_mb": 128_000}, {"walltime_s": 57_600}),
        (
            "max_walltime_s",
            {"max_walltime_s": 600, "max_memory_mb": 128_000},
            {"cpu_hs06s": 360_000.0, "base_walltime_s": 600},
        ),
    ],
)
def test_what_an_operator_sets_as_advised_brings_jobs(
    grid: Any, broker: str, column: str, values: dict[str, Any], needs: dict[str, Any]
) -> None:
    grid(**values)
    asked = asking(**needs)
    found, advice = decided(broker, asked)
    assert not found.chosen
    settings = [match for one in advice if (match := SETTING.fullmatch(one))]
    assert len(settings) == 1, (found.sentence(), advice)
    now, value = map(int, settings[0].groups())
    assert now == getattr(Queue.objects.get(), column), "as the admin shows it"
    Queue.objects.update(**{column: value})
    assert decided(broker, asked)[0].chosen
    Queue.objects.update(**{column: value - max(1, value // 10)})
    assert not decided(broker, asked)[0].chosen, "no more than is needed"


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
def test_a_time_limit_that_leaves_nothing_says_what_takes_it(grid: Any, broker: str) -> None:
    grid(max_walltime_s=600, max_memory_mb=128_000)
    found, _ = decided(broker, asking(memory_mb=1000, cpu_hs06s=36_000.0, base_walltime_s=600))
    says = "needs 36000, the site gives 0 HS06 s in 600 s, 600 s of which are the task's baseWalltime."
    assert says in found.sentence(), found.sentence()


def test_the_headline_says_of_which_slot_the_part_is(grid: Any) -> None:
    grid(max_memory_mb=1000)
    found, _ = decided(ANALYSIS, NEEDS)
    assert found.sentence() == (
        "The only site, MINE, was skipped: needs 8100 MB, the site gives 125 MB "
        "(1 of the 8 cores of a slot of 1000 MB)."
    )


def test_a_limit_of_the_size_of_jobs_is_no_setting_of_the_queue(grid: Any) -> None:
    """The variant for much memory begins where that for little ends, whatever the queue is set to."""
    grid(max_memory_mb=128_000, max_walltime_s=60)
    _, advice = decided(ANALYSIS, asking(memory_mb=1000, walltime_s=600))
    assert not [one for one in advice if "memory" in one], advice


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
def test_a_queue_that_cuts_its_slots_is_included_and_excluded_by_its_own_name(grid: Any, broker: str) -> None:
    grid(max_memory_mb=16_000)
    small = asking(memory_mb=1000)
    assert decided(broker, small)[0].chosen
    assert decided(broker, asking(memory_mb=1000, included_sites=(), excluded_sites=("MI*",)))[0].code == "excluded"


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
@pytest.mark.parametrize("bound", [{"included_sites": ("MINE",)}, {"included_sites": (), "preassigned_site": "MINE"}])
def test_a_queue_that_was_taken_out_is_to_be_set_online(grid: Any, broker: str, bound: dict[str, Any]) -> None:
    """Also where it has variants of several sizes, of which the first by name is not the one for the job."""
    grid(max_memory_mb=16_000, status="offline", status_reason="new switches")
    needs = asking(memory_mb=1000, **bound)
    found, advice = decided(broker, needs)
    assert found.code == "site_offline" and "Have MINE set online; then MINE takes its jobs." in advice
    Queue.objects.update(status="online")
    assert decided(broker, needs)[0].chosen


SCRATCH = {"memory_mb": 1000, "atom_mb": 9000.0, "effective_mb": 9000.0, "disk_mb": 9000, "work_disk_unit": "MB"}


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"file_mb": 9000.0}, set()),
        ({"file_mb": 9000.0, "files_a_job": 1}, set()),
        ({"file_mb": 9000.0, "effective_mb": 4500.0, "events_a_job": 50}, set()),
        ({"file_mb": 3000.0, "files_a_job": 3}, {"Make jobs of 2 files (nFilesPerJob; now 3)"}),
        (
            {"file_mb": 3000.0, "events_a_job": 1000, "atom_events": 1000},
            {
                "Kill the task and submit it again, under another name and with 666 events a job (nEventsPerJob; now 1000)"
            },
        ),
        (
            {"file_mb": 3000.0, "atom_mb": 3000.0, "effective_mb": 3000.0, "work_disk": 6000},
            {"Lower the workDiskCount of the task from 6000 to"},
        ),
        (
            {"file_mb": 3000.0, "atom_mb": 3000.0, "effective_mb": 3000.0, "out_disk": 2048},
            {"Lower the outDiskCount of the task from 2048 to"},
        ),
    ],
)
def test_advice_on_scratch_space_says_only_what_helps(
    grid: Any, broker: str, needs: dict[str, Any], said: set[str]
) -> None:
    grid(max_memory_mb=16_000, core_count=1, capability="score", work_dir_mb=8000)
    found, advice = decided(broker, asking(**{**SCRATCH, **needs}))
    assert found.code == "scratch_disk"
    own = [one for one in advice if not SETTING.fullmatch(one) and "site other than" not in one]
    assert len(own) == len(said) and all(one.startswith(tuple(said)) for one in own), advice
