"""`manage.py up` outlives its database server, and nothing outlives `manage.py up`."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.installation import Site, wait_for


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    tmp_path.chmod(0o755)
    made: list[Site] = []

    def make(*options: str, **settings: str) -> Site:
        home = tmp_path / f"home{len(made)}"
        home.mkdir(mode=0o755)
        made.append(Site(home, *options, **settings))
        wait_for(lambda: made[-1].url, "the site's start")
        return made[-1]

    yield make
    for site in made:
        site.stop()


def status(url: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code


def kill_next(site: Site, killed: set[int]) -> bool:
    """Kill the database server as soon as there is another one, which is while it recovers."""
    server = site.server()
    if server is None or server.pid in killed:
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        server.kill()
    killed.add(server.pid)
    return True


def test_the_site_answers_again_after_its_database_was_killed_while_it_recovered(make_site: Callable[..., Site]) -> None:
    site = make_site("--no-workers")
    assert status(f"{site.url}/readyz") == 200
    assert site.query("SELECT 1") == [(1,)]
    killed: set[int] = set()
    for _ in range(3):
        wait_for(lambda: kill_next(site, killed), "a database server to kill")
    wait_for(lambda: status(f"{site.url}/readyz") == 200, "the site's return")
    assert site.process.poll() is None
