"""Storage that is found full is that to which brokers would have a queue write."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid.full_storage import full_storage
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import Queue, QueueEndpoint, StorageEndpoint

pytestmark = pytest.mark.django_db


def full(name: str) -> StorageEndpoint:
    return StorageEndpoint.objects.create(name=name, site_name="S", space_free_gb=1)


def queue(name: str = "Q", **more: Any) -> Queue:
    return Queue.objects.create(**{"name": name, "site_name": "S", "status": "online", **more})


def uses(made: Queue, endpoint: str, **more: Any) -> None:
    QueueEndpoint.objects.create(queue=made, endpoint_id=endpoint, **more)


def found(name: str = "") -> dict[str, tuple[str, ...]]:
    return {one.name: one.queues for one in full_storage(name)}


def test_a_queue_without_a_list_of_storage_writes_to_the_one_that_it_names() -> None:
    named = full("SE")
    queue(storage=named)
    queue("OFF", storage=named, status="offline")
    queue("NONE")
    assert load_grid(timezone.now()).sites["Q"].outputs == ("SE",)
    assert found() == found("Q") == {"SE": ("Q",)} and found("OFF") == found("NONE") == {}


def test_a_list_for_analysis_alone_leaves_production_the_named_storage() -> None:
    made = queue(storage=full("SE"))
    full("OWN")
    uses(made, "OWN", scope="analysis", order_write=1)
    site = load_grid(timezone.now()).sites["Q"]
    assert (site.outputs, site.analysis_outputs) == (("SE",), ("OWN",))
    assert found() == {"SE": ("Q",), "OWN": ("Q",)}


@pytest.mark.parametrize("order", [1, None])
def test_a_queue_with_a_list_does_not_write_to_the_storage_that_it_names(order: int | None) -> None:
    made = queue(storage=full("SE"))
    full("LISTED")
    uses(made, "LISTED", order_read=1, order_write=order)
    outputs = load_grid(timezone.now()).sites["Q"].outputs
    assert outputs == (("LISTED",) if order else ())
    assert found() == {name: ("Q",) for name in outputs}


def test_of_equal_orders_the_first_counts_as_brokers_sort() -> None:
    """Capitals first: on a database that sorts by the rules of a language, too."""
    made = queue()
    for name in ("a_disk", "B_DISK"):
        full(name)
        uses(made, name, order_write=1)
    first = load_grid(timezone.now()).sites["Q"].outputs[0]
    assert first == "B_DISK" and found() == {first: ("Q",)}
