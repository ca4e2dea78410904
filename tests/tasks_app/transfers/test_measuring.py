"""What the mover measures of links is in the network matrix, and the broker weighs queues by it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from brokerage_app.cases.production_case import ProductionCase, ProductionSettings
from brokerage_app.grid import configured, repository
from brokerage_app.models import LinkValue, Queue, QueueEndpoint, Site, StorageEndpoint
from brokerage_app.vocabulary.needs import TaskNeeds
from tasks_app.agents.watchdogs import links
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import TransferRequest, TransferRule
from tasks_app.transfers.link_measures import KEPT_FOR
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db
MB = 1_000_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    """A satellite and a nucleus, each with a queue and a storage."""
    configured.forget()
    repository.forget()
    found = Storages(tmp_path)
    for name, role in (("NEAR", "satellite"), ("CERN", "nucleus")):
        Site.objects.create(name=name, role=role)
        found.add(f"{name}_DISK", name)
        queue = Queue.objects.create(name=f"{name}_Q", site_name=name, core_count=1, max_memory_mb=4000)
        disk = StorageEndpoint.objects.get(name=f"{name}_DISK")
        QueueEndpoint.objects.create(queue=queue, endpoint=disk, order_read=1, order_write=1)
    yield found
    configured.forget()
    repository.forget()


def values(site: Storages) -> dict[str, float]:
    links.run(site.now)
    return dict(LinkValue.objects.filter(source="NEAR", destination="CERN").values_list("key", "value"))


def weight(site: Storages) -> float | None:
    grid = repository.load_grid(site.now)
    return ProductionCase(TaskNeeds(nucleus="CERN"), grid, ProductionSettings()).network_weight(grid.sites["NEAR_Q"])


def test_throughput_and_what_waits_are_measured_and_change_the_weight_of_a_queue(site: Storages) -> None:
    configure("LINK_RATE", 4)
    configure("LINK_TRANSFERS", 1)
    configure("TURN_VOLUME", 1000)
    lfns = [f"f{n}" for n in range(5)]
    site.dataset("lab.out", "NEAR_DISK", lfns, size=4 * MB)
    assert values(site) == {}
    unknown = weight(site)
    site.rule("CERN_DISK", lfns, TransferKind.GATHER)
    site.turn()
    assert values(site)["Production Output_queued"] == 5
    full = weight(site)
    site.turn(2)
    found = values(site)
    done = int(found["Production Output_done_1h"])
    assert done == 2 and found["Production Output_queued"] == 5 - done
    assert found["dashb_mbps_1h"] == found["dashb_mbps_1d"] == found["dashb_mbps_1w"] == pytest.approx(4, rel=0.01)
    measured = weight(site)
    assert unknown is not None and full is not None and measured is not None
    assert full < unknown, "files wait on the link"
    assert measured < full, "and it gives 4 MB/s only: a factor of 1.2 instead of 1.3"
    for _ in range(20):
        site.turn(2)
    assert values(site)["Production Output_queued"] == 0
    site.now += timedelta(hours=2)
    found = values(site)
    assert (found["Production Output_done_1h"], found["Production Output_done_6h"]) == (0, 5)


def test_failures_are_counted_and_old_rules_are_forgotten_once_they_are_settled(site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 1)
    site.dataset("lab.out", "NEAR_DISK", ["f1", "f2"])
    site.rule("CERN_DISK", ["f1"])
    TransferRequest.objects.update(bytes=7)
    site.turn()
    assert TransferRule.objects.get().status == "failed"
    assert values(site)["Production Input_failed_1h"] == 1
    site.now += KEPT_FOR + timedelta(minutes=1)
    assert links.run(site.now).items == 0 and TransferRule.objects.count() == 1
    TransferRule.objects.update(is_settled=True)
    assert links.run(site.now).items == 1 and not TransferRequest.objects.exists()
