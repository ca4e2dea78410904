"""Where the inputs of tasks are: what data management says is kept, asked again when it is old, and read by brokers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from brokerage_app.grid.replicas import whereabouts
from brokerage_app.models import DatasetReplica, ReplicaLookup, StorageEndpoint
from brokerage_app.vocabulary.needs import InputData, Replica
from tasks_app.agents.watchdogs import replicas
from tasks_app.ddm.base import Held, Places
from tasks_app.ddm.local_storage import catalogue
from tasks_app.inputs import locality
from tasks_app.models import CatalogueDataset, CatalogueFile, Dataset, Task
from tests.flow.driving import add_dataset

NOW = timezone.now()
pytestmark = pytest.mark.django_db


def at_two_places(name: str = "lab.in") -> None:
    """Six files, four of them at SE_A and two at SE_T, a tape."""
    add_dataset(name, 6, size=1_000_000)
    CatalogueFile.objects.filter(dataset__name=name).update(endpoint="SE_A")
    ids = list(CatalogueFile.objects.filter(dataset__name=name).values_list("id", flat=True)[:2])
    CatalogueFile.objects.filter(pk__in=ids).update(endpoint="SE_T")
    StorageEndpoint.objects.get_or_create(name="SE_T", defaults={"site_name": "A", "is_tape": True})


def test_the_catalogue_says_what_each_endpoint_has_of_datasets_and_containers() -> None:
    at_two_places()
    add_dataset("lab.more", 3, size=10)
    container = CatalogueDataset.objects.create(name="lab.all/", scope="lab")
    container.members.set(CatalogueDataset.objects.filter(name__in=["lab.in", "lab.more"]))
    found = catalogue.replicas(["lab.in", "lab.more", "lab.all/", "lab.none"])
    assert found["lab.in"] == Places(
        6, 6_000_000, (Held("SE_A", 4, 4_000_000, False), Held("SE_T", 2, 2_000_000, False))
    )
    assert found["lab.more"] == Places(3, 30, (Held("LOCAL_SE", 3, 30, True),))
    assert found["lab.all/"].files == 9 and len(found["lab.all/"].held) == 3
    assert found["lab.none"] == Places()


def test_inputs_of_a_task_come_with_their_replicas_and_primary_ones_first(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    at_two_places()
    add_dataset("lab.second", 2, size=500_000)
    task = make_task()
    first = make_dataset(task, name="lab.in", files=6)
    make_dataset(task, name="lab.second", master_id=first.id, attributes="distributed,ratio=2", list_position=-1)
    make_dataset(task, name="seq_number", type="pseudo_input")
    make_dataset(task, name="lab.unasked", files=7, master_id=first.id, list_position=-2)
    make_dataset(task, name="lab.gone", status="removed")
    make_dataset(task, name="lab.cvmfs", master_id=first.id, attributes="cvmfs,nosplit,repeat")
    locality.ask(["lab.in", "lab.second", "seq_number"], NOW)
    assert locality.inputs_of(task) == (
        InputData(
            "lab.in", 6, 6.0, True, False, {"SE_A": Replica(4, 4.0, False), "SE_T": Replica(2, 2.0, False, True)}
        ),
        InputData("lab.unasked", 7, 0.0, False, False, {}),
        InputData("lab.second", 2, 1.0, False, True, {"LOCAL_SE": Replica(2, 1.0)}),
    )


def test_replicas_of_a_dataset_that_many_tasks_use_count_as_complete(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    at_two_places()
    task = make_task()
    make_dataset(task, name="lab.in", files=6, attributes="manytime")
    locality.ask(["lab.in"], NOW)
    (data,) = locality.inputs_of(task)
    assert data.replicas == {"SE_A": Replica(4, 4.0, True), "SE_T": Replica(2, 2.0, True, True)}


def test_a_replica_that_is_gone_is_forgotten_when_data_management_is_asked_again() -> None:
    at_two_places()
    locality.ask(["lab.in"], NOW)
    CatalogueFile.objects.update(endpoint="SE_B")
    locality.ask(["lab.in"], NOW + timedelta(minutes=1))
    known = whereabouts(["lab.in"])["lab.in"]
    assert known.replicas == {"SE_B": Replica(6, 6.0)}
    assert known.asked_at == NOW + timedelta(minutes=1)


def test_old_answers_are_asked_again_for_open_tasks_and_forgotten_for_others(
    make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    for name in ("lab.open", "lab.done", "lab.young"):
        add_dataset(name, 1)
    make_dataset(make_task(), name="lab.open")
    make_dataset(make_task(), name="lab.young")
    make_dataset(make_task(status="done"), name="lab.done")
    locality.ask(["lab.done"], NOW - timedelta(days=8))
    locality.ask(["lab.open"], NOW - timedelta(minutes=61))
    locality.ask(["lab.young"], NOW - timedelta(minutes=59))
    assert replicas.run(now=NOW).items == 1
    assert dict(ReplicaLookup.objects.values_list("dataset", "at")) == {
        "lab.open": NOW,
        "lab.young": NOW - timedelta(minutes=59),
    }
    assert set(DatasetReplica.objects.values_list("dataset", flat=True)) == {"lab.open", "lab.young"}
    assert replicas.run(now=NOW).items == 0


def test_a_dataset_without_replicas_is_known_to_have_none() -> None:
    locality.ask(["lab.nowhere"], NOW)
    known = whereabouts(["lab.nowhere", "lab.never"])
    assert known["lab.nowhere"].replicas == {} and known["lab.never"].replicas is None
