"""The page of transfers: links with what waits and why, and rules that are open or have failed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from brokerage_app.grid import configured
from brokerage_app.models import StorageEndpoint
from tests.tasks_app.transfers.storage_scene import Storages, configure

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Storages]:
    configured.forget()
    found = Storages(tmp_path, timezone.now())
    for name in ("A_DISK", "B_DISK"):
        found.add(name)
    yield found
    configured.forget()


def text(reader: Any) -> str:
    answer = reader.get("/transfers/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_without_transfers_it_says_so(reader: Any, site: Storages) -> None:
    page = text(reader)
    assert "0 files are being copied, 0 wait, 0 failed in the last hour." in page
    assert "Nothing is being transferred" in page and "No rule is open" in page


def test_links_and_rules_say_what_waits_and_why(reader: Any, site: Storages) -> None:
    configure("LINK_TRANSFERS", 1)
    configure("LINK_RATE", 0.0001)
    site.dataset("lab.in", "A_DISK", ["f1", "f2", "f3"])
    rule_id = site.rule("B_DISK", ["f1", "f2", "f3"], job_id=77)
    site.turn()
    page = text(reader)
    assert "1 file is being copied, 2 wait, 0 failed in the last hour." in page
    assert "the link takes 1 at a time" in page
    assert f"copy {rule_id}" in page and "/jobs/77/" in page and "0 of 3" in page


def test_a_failure_says_its_cause(reader: Any, site: Storages) -> None:
    configure("TRANSFER_ATTEMPTS", 2)
    site.dataset("lab.in", "A_DISK", ["<b>f1"[3:]])
    StorageEndpoint.objects.filter(name="B_DISK").update(blacklisted_write=True)
    site.rule("B_DISK", ["f1"])
    site.turn()
    assert "tried again later: B_DISK is blacklisted for write" in text(reader)
    site.turn(timedelta(hours=2).total_seconds())
    page = text(reader)
    assert "1 failed in the last hour" in page and "could not be copied to" in page
