from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tasks_app.worker_node.running import Pilots
from tests.tasks_app.worker_node.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


@pytest.fixture
def pilots(site: Site, tmp_path: Path) -> Iterator[Pilots]:
    """Starts real pilot processes; they and all below them are gone after the test."""
    pilots = Pilots(site, tmp_path / "work")
    yield pilots
    pilots.end()
