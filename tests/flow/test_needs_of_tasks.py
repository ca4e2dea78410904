"""What a task says of its jobs reaches the brokers, and in which order its input is read."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.api.v2.task_serializers import TaskRowSerializer, TaskSerializer
from tasks_app.generation import nuclei
from tasks_app.generation.turn_facts import read_turn
from tasks_app.models import File, Task
from tests.flow.driving import (
    add_dataset,
    add_files,
    files,
    inputs,
    jobs,
    parameters,
    reads,
    settle,
    submit,
    task,
    wake,
)
from tests.flow.pilot import Pilot
from tests.flow.test_merging import first_jobs, merge_jobs, merging_task

pytestmark = pytest.mark.usefixtures("books")


def fed(**more: Any) -> int:
    made = submit(parameters(f"lab.t{Task.objects.count()}", reads("lab.in"), **more))
    refiner.run()
    feeder.run()
    return made


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        ({"t1Weight": -1}, {"t1_weight": -1}),
        ({"avoidVP": True}, {"avoid_vp": True}),
        ({"ipConnectivity": "http#IPv6"}, {"network": "http", "ip_stack": "IPv6"}),
        ({"onlyTagsForFC": True}, {"container_tags_only": True}),
        ({"ramUnit": "MBPerCore", "ramCount": 2000, "baseRamCount": 500}, {"base_memory_mb": 500}),
        ({"transUses": "Atlas-24.0.1"}, {"trans_uses": "Atlas-24.0.1"}),
        ({"ioIntensity": 300, "ioIntensityUnit": "kBPerS"}, {"io_intensity": 300.0}),
        ({"maxCoreCount": 8}, {"max_cores": 8}),
        ({"fullChain": "require"}, {"full_chain": "require"}),
        ({"allowInputLAN": "only"}, {"direct_io": 2}),
        ({"cpuEfficiency": 70}, {"cpu_efficiency_percent": 70}),
        (
            {"ramCount": 2400, "ramUnit": None, "ramCountUnit": "MBPerCore"},
            {"memory_mb": 2400, "memory_per_core": True},
        ),
        ({"workDiskCount": 6, "workDiskUnit": "GB"}, {"work_disk": 6, "work_disk_unit": "GB"}),
        ({"outDiskCount": 7, "outDiskUnit": "MB"}, {"out_disk": 7, "out_disk_unit": "MB"}),
        ({"coreCount": 4}, {"cores": 4}),
        ({"excludedSite": ["SITE_B"]}, {"excluded_sites": ("SITE_B",)}),
        ({"transHome": "AnalysisTransforms-Atlas_24.0.1"}, {"trans_home": "AnalysisTransforms-Atlas_24.0.1"}),
        ({"architecture": "x86_64-el9-gcc13-opt"}, {"architecture": "x86_64-el9-gcc13-opt"}),
        ({"container_name": "docker://lab/image:1"}, {"container": "docker://lab/image:1"}),
    ],
)
def test_what_a_task_asks_for_is_what_brokers_are_told(given: dict[str, Any], needs: dict[str, Any]) -> None:
    add_dataset("lab.in", 1)
    told = read_turn(task(fed(**given)), 0, timezone.now()).needs
    assert {name: getattr(told, name) for name in needs} == needs


def test_merge_jobs_have_the_memory_and_the_cores_that_the_task_gives_them() -> None:
    Queue.objects.update(core_count=2, max_memory_mb=8000)
    made = merging_task(mergeRamCount=3500, mergeCoreCount=2)
    settle()
    first_jobs(Pilot())
    settle()
    (job,) = merge_jobs(made)
    assert (job.core_count, job.min_ram_mb) == (2, 3500 * 0.9), "a slot may have a tenth less than what is asked for"


def test_jobs_go_by_luminosity_blocks_and_may_join_them() -> None:
    add_dataset("lab.in", 4)
    made = fed(nFilesPerJob=3, orderByLB=True, skipScout=True)
    for number, block in enumerate((2, 1, 2, 1)):
        File.objects.filter(task_id=made, lfn=f"lab.in.{number:05d}").update(lumi_block=block)
    wake()
    job_generator.run()
    assert [sorted(name[-1] for name in inputs(job.id)) for job in jobs(made)] == [["0", "1", "3"], ["2"]]


def test_files_that_hold_whole_jobs_are_read_first_when_the_task_says_so() -> None:
    add_dataset("lab.in", 2, events=25)
    add_files("lab.in", [5, 6], events=30)
    made = fed(nEventsPerJob=10, orderInputBy="eventsAlignment")
    assert [file.lfn[-1] for file in sorted(files(made), key=lambda f: f.id)][:2] == ["5", "6"]


def test_events_are_numbered_inside_of_files_when_the_task_says_so() -> None:
    add_dataset("lab.in", 2, events=20)
    made = fed(nEventsPerJob=10, nEventsPerInputFile=20, inFilePosEvtNum=True)
    assert [(f.lfn[-1], f.start_event, f.first_event) for f in files(made)] == [
        ("0", 0, 1),
        ("0", 10, 11),
        ("1", 0, 1),
        ("1", 10, 11),
    ]


def test_what_people_are_told_of_a_task_is_what_it_came_with() -> None:
    add_dataset("lab.in", 1)
    given = {"ticketID": "77", "ticketSystemType": "GGUS", "countryGroup": "de", "framework": "prun"}
    made = fed(osInfo="Linux-6.1.0", **given)
    shown = TaskRowSerializer(task(made)).data | TaskSerializer(task(made)).data
    assert [shown[name] for name in ("ticket_id", "ticket_system_type", "country_group", "framework")] == [
        *given.values()
    ]
    assert shown["term_condition"] == "Linux-6.1.0"


def test_with_the_master_alone_a_nucleus_need_not_have_other_input() -> None:
    add_dataset("lab.in", 1)
    asked = [nuclei.asked_of(task(fed(taskBrokerOnMaster=wish)), timezone.now()) for wish in (True, False)]
    assert [one.gathering.on_master for one in asked] == [True, False]
