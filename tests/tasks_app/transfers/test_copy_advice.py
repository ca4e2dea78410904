"""The advice on files that wait for their turn names the parameter that helps: with another value they arrive sooner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from jedisite import refusals
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.models import CatalogueFile, FileReplica, TransferRequest, TransferRule
from tasks_app.transfers import copy_reasons
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db
MB = 1_000_000
FILES = [f"f{n}" for n in range(6)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    found.add("DISK")
    found.add("B_DISK")
    found.add("TAPE", is_tape=True)
    yield found
    configured.forget()


def reason(site: Storages, source: str) -> str:
    """The code of what six files of half a MB wait for."""
    TransferRule.objects.all().delete()
    FileReplica.objects.all().delete()
    CatalogueFile.objects.all().delete()
    for lfn in FILES:
        site.path("B_DISK", lfn).unlink(missing_ok=True)
    site.dataset("lab.in", source, FILES, size=MB // 2)
    site.rule("B_DISK", FILES, TransferKind.STAGE, task_id=1)
    return copy_reasons.copies_of(site.now, TransferKind.STAGE, task_id=1).code


def turns(site: Storages) -> int:
    """Turns of half a minute until all of them have arrived."""
    for turn in range(1, 50):
        site.turn(30)
        if not TransferRequest.objects.exclude(status="done").exists():
            return turn
    raise AssertionError("they do not arrive")


SETTINGS = {"LINK_TRANSFERS": 1.0, "LINK_RATE": 0.0, "TAPE_DRIVES": 2.0, "TAPE_LATENCY": 60.0, "TURN_VOLUME": 512.0}
OTHERS = {"LINK_TRANSFERS": 8.0, "LINK_RATE": 1000.0, "TAPE_DRIVES": 8.0, "TURN_VOLUME": 10_000.0}


@pytest.mark.parametrize(
    ("source", "given", "code", "names", "better"),
    [
        ("DISK", {"LINK_RATE": 0.0125}, "copy_link_slow", "LINK_RATE", 0.1),
        ("DISK", {"TURN_VOLUME": 1}, "copy_mover_busy", "TURN_VOLUME", 10),
        ("TAPE", {"LINK_TRANSFERS": 4}, "copy_tape_busy", "TAPE_DRIVES", 6),
        ("TAPE", {}, "copy_link_busy", "LINK_TRANSFERS", 2),
        ("TAPE", {"LINK_TRANSFERS": 4, "LINK_RATE": 0.0075}, "copy_link_slow", "LINK_RATE", 1),
    ],
)
def test_the_parameter_that_is_named_helps_more_than_all_others(
    site: Storages, source: str, given: dict[str, float], code: str, names: str, better: float
) -> None:
    for key, value in {**SETTINGS, **given}.items():
        configure(key, value)
    assert reason(site, source) == code
    assert names in refusals.get(code).advice
    before = turns(site)
    for key, value in {**OTHERS, names: {**SETTINGS, **given}[names]}.items():
        configure(key, value)
    reason(site, source)
    with_others = turns(site)
    for key, value in {**SETTINGS, **given, names: better}.items():
        configure(key, value)
    reason(site, source)
    assert turns(site) < min(before, with_others * 0.8)
