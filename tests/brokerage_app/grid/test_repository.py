"""The snapshot of the grid: what the database says of queues, storage, nuclei, links and jobs, read once and kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from brokerage_app.formulas.unified import parts_of
from brokerage_app.grid import repository
from brokerage_app.grid.queue_status import set_status
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import (
    HarvesterSlots,
    JobCount,
    LinkValue,
    Queue,
    QueueActivity,
    QueueEndpoint,
    ResourceType,
    Site,
    SoftwareTags,
    StorageEndpoint,
    UserCount,
    WorkerNodeCpus,
    WorkerNodeGpus,
    WorkQueue,
)
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import Counts, SiteView, UserJobs
from brokerage_app.vocabulary.stored import pack, unpack
from jedisite import audit
from jedisite.models import AuditEntry

NOW = timezone.now()
pytestmark = pytest.mark.django_db


def queue(name: str = "A", **more: Any) -> Queue:
    return Queue.objects.create(**{"name": name, "site_name": f"site_{name}", "capability": "score", **more})


def storage(name: str, **more: Any) -> StorageEndpoint:
    return StorageEndpoint.objects.create(name=name, site_name="site_A", **more)


def store_types() -> None:
    for position, kind in enumerate(DEFAULT_TABLE):
        ResourceType.objects.create(
            name=kind.name,
            position=position,
            min_cores=kind.min_cores,
            max_cores=kind.max_cores,
            min_ram_per_core_mb=kind.min_memory_per_core_mb,
            max_ram_per_core_mb=kind.max_memory_per_core_mb,
        )


@pytest.mark.parametrize(
    ("parent", "children"),
    [
        (
            SiteView("Q", cores=8, max_memory_mb=32_000, capability="ucore"),
            {
                "Q/SCORE": (1, 0, 2000),
                "Q/SCORE_HIMEM": (1, 2001, 4000),
                "Q/MCORE": (8, 0, 16_000),
                "Q/MCORE_HIMEM": (8, 16_001, 32_000),
            },
        ),
        (
            SiteView("Q", cores=1, max_memory_mb=4000, capability="ucore"),
            {"Q/SCORE": (1, 0, 2000), "Q/SCORE_HIMEM": (1, 2001, 4000)},
        ),
        (SiteView("Q", cores=0, capability="ucore"), {"Q/SCORE": (1, 0, 2000), "Q/SCORE_HIMEM": (1, 2001, 0)}),
        (SiteView("Q", cores=8, max_memory_mb=32_000, capability="mcore"), {}),
    ],
)
def test_a_queue_that_cuts_slots_to_size_has_a_pseudo_queue_for_each_type_that_fits(
    parent: SiteView, children: dict[str, tuple[int, int, int]]
) -> None:
    found = parts_of(parent, DEFAULT_TABLE)
    assert {v.name: (v.cores, v.min_memory_mb, v.max_memory_mb) for v in found} == children
    assert {(v.parent, v.queue) for v in found} <= {("Q", "Q")}


def test_pseudo_queues_have_the_jobs_of_their_parent_and_are_not_among_the_queues() -> None:
    store_types()
    queue("A", core_count=8, max_memory_mb=32_000, capability="ucore")
    queue("B")
    JobCount.objects.create(
        site="A",
        share="Express",
        work_queue_id=0,
        resource_type="SCORE",
        label="user",
        status="running",
        jobs=7,
        cores=7,
    )
    grid = load_grid(NOW)
    assert set(grid.queues()) == {"A", "B"}
    assert set(grid.sites) == {"A", "B", "A/SCORE", "A/SCORE_HIMEM", "A/MCORE", "A/MCORE_HIMEM"}
    assert grid.sites["A"].is_parent and not grid.sites["B"].is_parent
    assert {site.running for name, site in grid.sites.items() if name != "B"} == {7}


def test_jobs_are_counted_by_share_and_resource_type() -> None:
    queue()
    rows = [
        ("Express", "SCORE", "running", 5, 5),
        ("Express", "SCORE", "sent", 1, 1),
        ("Express", "SCORE", "starting", 2, 2),
        ("Express", "MCORE", "activated", 3, 24),
        ("", "", "pending", 4, 4),
        ("", "", "defined", 6, 6),
        ("", "", "assigned", 8, 8),
        ("", "", "transferring", 9, 9),
        ("", "", "holding", 1, 1),
    ]
    for share, kind, status, jobs, cores in rows:
        for label in ("user", "managed"):
            JobCount.objects.create(
                site="A",
                share=share,
                work_queue_id=0,
                resource_type=kind,
                label=label,
                status=status,
                jobs=jobs,
                cores=cores,
            )
    site = load_grid(NOW).sites["A"]
    assert site.jobs == {
        "Express": {"SCORE": Counts(running=10, starting=6, running_cores=10), "MCORE": Counts(activated=6)},
        "": {"": Counts(defined=12, assigned=16, transferring=18, waiting=10)},
    }
    assert (site.running, site.queued, site.defined) == (10, 6 + 6 + 16, 12 + 8)


def test_jobs_of_resource_queues_are_known_by_the_name_of_the_queue() -> None:
    queue()
    special = WorkQueue.objects.create(name="gpus", type="managed", vo="atlas", function="Resource")
    plain = WorkQueue.objects.create(name="plain", type="managed", vo="atlas")
    for work_queue, jobs in ((special, 3), (plain, 5)):
        JobCount.objects.create(
            site="A",
            share="X",
            work_queue_id=work_queue.id,
            resource_type="SCORE",
            label="managed",
            status="activated",
            jobs=jobs,
            cores=jobs,
        )
    site = load_grid(NOW).sites["A"]
    assert site.resource_queue_jobs == {"gpus": {"SCORE": Counts(activated=3)}}
    assert site.counts("X") == Counts(activated=8)


def test_slots_that_are_expired_or_negative_do_not_count() -> None:
    queue()
    for share, slots, expires in (
        ("X", 5, None),
        (None, 3, NOW + timedelta(hours=1)),
        ("Y", 7, NOW - timedelta(hours=1)),
        ("Z", -1, None),
    ):
        HarvesterSlots.objects.create(queue="A", share=share, slots=slots, expires=expires)
    site = load_grid(NOW).sites["A"]
    assert (site.slots_for("X"), site.slots_for("Y"), site.slots_for("Z")) == (5, 3, 3)


def test_storage_is_in_the_order_of_its_relations_and_analysis_may_have_its_own() -> None:
    made = queue()
    for name, more in (("S1", {}), ("S2", {}), ("S3", {"blacklisted_read": True}), ("S4", {"blacklisted_write": True})):
        storage(name, **more)
    for name, scope, read, write in (
        ("S1", "default", 2, 1),
        ("S2", "default", 1, None),
        ("S3", "default", 3, None),
        ("S4", "analysis", None, 1),
    ):
        QueueEndpoint.objects.create(queue=made, endpoint_id=name, scope=scope, order_read=read, order_write=write)
    grid = load_grid(NOW)
    site = grid.sites["A"]
    assert (site.inputs, site.outputs) == (("S2", "S1"), ("S1",))
    assert (site.analysis_inputs, site.analysis_outputs) == ((), ("S4",))
    assert not grid.endpoints["S4"].is_up("write_wan") and grid.endpoints["S4"].is_up("read_lan")


def test_a_queue_without_relations_uses_the_storage_that_it_names() -> None:
    queue(storage=storage("S1"))
    site = load_grid(NOW).sites["A"]
    assert (site.inputs, site.outputs) == (("S1",), ("S1",))


def test_a_nucleus_is_a_site_of_that_role_with_production_queues() -> None:
    for name, role in (("site_A", "nucleus"), ("site_B", "satellite"), ("site_C", "nucleus")):
        Site.objects.create(name=name, role=role)
    storage("S1")
    StorageEndpoint.objects.create(name="S2", site_name="elsewhere")
    made = queue("A", catchall="bareNucleus=allow,secondaryNucleus=site_C")
    queue("A2", site_name="site_A", storage_id="S1")
    queue("B")
    queue("C", type="analysis")
    for order, name in enumerate(("S1", "S2"), 1):
        QueueEndpoint.objects.create(queue=made, endpoint_id=name, order_read=order, order_write=order)
    nuclei = load_grid(NOW).nuclei
    assert set(nuclei) == {"site_A"}
    found = nuclei["site_A"]
    assert (found.queues, found.outputs, found.inputs) == (("A", "A2"), ("S1",), ("S1", "S2"))
    assert (found.default_output, found.bare, found.secondary, found.state) == ("S1", "allow", "site_C", "ACTIVE")


def test_a_satellite_that_keeps_whole_chains_is_among_the_nuclei_and_marked() -> None:
    for name, role in (("site_A", "satellite"), ("site_B", "satellite"), ("site_C", "nucleus")):
        Site.objects.create(name=name, role=role)
    queue("A", catchall="bareNucleus=only")
    queue("B")
    queue("C", catchall="bareNucleus=allow")
    nuclei = load_grid(NOW).nuclei
    assert {name: (one.is_satellite, one.bare) for name, one in nuclei.items()} == {
        "site_A": (True, "only"),
        "site_C": (False, "allow"),
    }


def test_links_are_read_from_values_of_the_last_hour() -> None:
    for source, key, value, minutes in (
        ("X", "AGIS_closeness", 3, 5),
        ("X", "dashb_mbps_1h", 12.5, 5),
        ("X", "dashb_mbps_1w", 9, 90),
        ("X", "Production Output_queued", 40, 5),
        ("Y", "Production Output_queued", 2, 5),
        ("Y", "Express_queued", 1, 70),
        ("X", "Production Output_done_1h", 8, 5),
    ):
        LinkValue.objects.create(
            source=source, destination="N", key=key, value=value, at=NOW - timedelta(minutes=minutes)
        )
    grid = load_grid(NOW)
    link = grid.link("X", "N")
    assert (link.closeness, link.mbps_1h, link.mbps_1w, link.queued) == (3, 12.5, None, {"Production Output": 40})
    assert grid.to_nucleus == {"N": {"Production Output": 42}}
    later = load_grid(NOW + timedelta(minutes=56))
    assert later.links == {} and later.to_nucleus == {}


def test_what_the_watchdog_of_statistics_found_is_on_the_queue() -> None:
    queue()
    QueueActivity.objects.create(
        site="A",
        last_start=NOW - timedelta(minutes=10),
        started_per_h=4.5,
        disk_io_kbps=300,
        transferring_to={"N": 8},
        pilots_3h=12,
        batch_jobs=7,
    )
    UserCount.objects.create(site="A", share="User", user="ada", queued=3, running=2)
    site = load_grid(NOW).sites["A"]
    assert (site.last_start_s, site.started_per_h, site.disk_io_kbps) == (600, 4.5, 300)
    assert (site.transferring_to, site.pilots_3h, site.batch_jobs) == ({"N": 8}, 12, 7)
    assert site.users == {"User": {"ada": UserJobs(3, 2)}}


def test_switches_of_params_win_over_those_of_catchall() -> None:
    queue(
        catchall="use_only_local_data,jobChunkSize=4,useJumboJobs,minEventsForJumbo=500,per_core_attr",
        core_count=8,
        max_memory_mb=2000,
        params={"jobChunkSize": 9, "useJumboJobs": False, "max_io_intensity": 1200.5, "grandly_unified": True},
        type="production",
    )
    site = load_grid(NOW).sites["A"]
    assert (site.only_local_data, site.portion, site.jumbo, site.max_io_intensity) == (True, 9, False, 1200.5)
    assert (site.max_memory_mb, site.type) == (16_000, "unified")
    assert (site.switches["grandly_unified"], site.min_events_for_jumbo) == ("", 500)


def test_a_change_of_any_description_is_seen_by_the_next_load() -> None:
    queue()
    load_grid(NOW)
    Queue.objects.update(status="offline")
    assert load_grid(NOW).sites["A"].status == "offline"
    SoftwareTags.objects.create(queue="A", data={"containers": ["any"]})
    SoftwareTags.objects.create(queue="ALL", data={"tags": [{"tag": "x"}]})
    WorkerNodeGpus.objects.create(queue="A", vendor="nvidia", model="T4", memory_mb=16_000)
    WorkerNodeCpus.objects.create(queue="A", level="x86_64-v3", percentage=60)
    grid = load_grid(NOW)
    site = grid.sites["A"]
    assert (site.software, grid.all_tags) == ({"containers": ["any"]}, ({"tag": "x"},))
    assert [(gpu.model, gpu.vram_mb) for gpu in site.gpus] == [("T4", 16_000)]
    assert site.cpu_levels == (("x86_64-v3", 60.0),)
    Queue.objects.all().delete()
    assert load_grid(NOW).sites == {}


def test_the_end_of_a_status_is_on_the_queue_and_its_parts() -> None:
    store_types()
    queue("PARENT", capability="ucore", core_count=8)
    queue("B")
    for hours in (1, 2):
        until = NOW + timedelta(hours=hours)
        set_status("PARENT", "offline", by="ada", reason="power cut", until=until, now=NOW)
        sites = load_grid(NOW).sites
        assert {site.status_until for site in sites.values() if site.queue == "PARENT"} == {until}
        assert sites["B"].status_until is None and len(sites) > 3
    set_status("PARENT", "offline", by="ada", reason="for good", now=NOW)
    assert {site.status_until for site in load_grid(NOW).sites.values()} == {None}


def test_a_snapshot_is_stored_and_read_back_as_it_was() -> None:
    queue()
    set_status("A", "offline", by="ada", reason="power cut", until=NOW + timedelta(hours=1), now=NOW)
    WorkerNodeGpus.objects.create(queue="A", vendor="nvidia", model="T4", memory_mb=16_000)
    WorkerNodeCpus.objects.create(queue="A", level="x86_64-v3", percentage=60)
    grid = load_grid(NOW)
    assert unpack(pack(grid)) == grid


def test_what_has_not_changed_is_not_read_again(django_assert_num_queries: Any) -> None:
    for number in range(5):
        queue(f"Q{number}")
    LinkValue.objects.create(source="A", destination="B", key="AGIS_closeness", value=1)
    QueueActivity.objects.create(site="Q1", pilots_3h=1)
    first = load_grid(NOW)
    with django_assert_num_queries(0):  # of the ORM, which reads descriptions; tokens, counts and slots use cursors
        again = load_grid(NOW)
    assert again == first
    with connection.cursor() as cursor:
        cursor.execute("UPDATE queue_activity SET pilots_3h = 2")
    assert load_grid(NOW).sites["Q1"].pilots_3h == 2


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    repository.forget()


def test_queues_that_were_deleted_lately_are_known_with_who_did_it_when() -> None:
    Queue.objects.create(name="BACK_AGAIN", site_name="X")
    for name in ("GONE_Q", "BACK_AGAIN"):
        audit.record("olga", "admin.delete", "queue", name)
    AuditEntry.objects.filter(object_id="GONE_Q").update(at=datetime(2026, 11, 22, 19, 42, tzinfo=UTC))
    repository.forget()
    assert dict(load_grid(datetime(2026, 11, 23, tzinfo=UTC)).gone) == {
        "GONE_Q": "was deleted 2026-11-22 19:42 UTC by olga"
    }
    repository.forget()
    assert "GONE_Q" not in load_grid(datetime(2027, 1, 23, tzinfo=UTC)).gone
