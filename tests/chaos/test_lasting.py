"""`manage.py up` outlives its database server, and nothing outlives `manage.py up`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jedisite.processes import launch
from tests.installation import Site, wait_for

pytestmark = pytest.mark.timeout(900)


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


def status(url: str, limit_s: float = 30) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=limit_s) as answer:
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


def answers_with_another(site: Site, killed: set[int]) -> bool:
    """Whether the site answers, and not through the last connections to a server that was killed."""
    server = site.server()
    return server is not None and server.pid not in killed and status(f"{site.url}/readyz") == 200


def test_the_site_answers_again_after_its_database_was_killed_while_it_recovered(
    make_site: Callable[..., Site],
) -> None:
    site = make_site("--no-workers")
    assert status(f"{site.url}/readyz") == 200
    assert site.query("SELECT 1") == [(1,)]
    killed: set[int] = set()
    for _ in range(3):
        wait_for(lambda: kill_next(site, killed), "a database server to kill")
    wait_for(lambda: answers_with_another(site, killed), "the site's return")
    assert site.process.poll() is None
    assert_nothing_is_left(site, signal.SIGINT)


def test_a_site_keeps_its_port_while_its_web_server_is_away(make_site: Callable[..., Site]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # other tests take and leave those from 8000
    site = make_site("--no-workers", "--port", str(port))
    web = {process for process in site.victims() if "gunicorn" in process.cmdline()}
    for process in site.victims():
        holds = [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.laddr.port == port]
        assert bool(holds) == (process in web), process.cmdline()
    (loader,) = (process for process in web if process.ppid() == site.process.pid)
    assert loader.num_threads() == 1, "its workers are forked from it: no thread of it may hold a lock then"
    assert {c.status for c in loader.net_connections("all")} == {psutil.CONN_LISTEN}, "nor may they share a connection"
    os.killpg(os.getpgid(next(iter(web)).pid), signal.SIGKILL)
    assert status(f"{site.url}{launch.ALIVE_PATH}", limit_s=120) == 200, "not refused meanwhile"
    site.stop()
    launch.take_port("127.0.0.1", port).close()


def test_a_killed_site_leaves_nothing_behind(make_site: Callable[..., Site]) -> None:
    site = make_site("--slots", "1")
    assert "Warning" not in (site.home / "log" / "web.log").read_text(), "a first start is nothing to warn of"
    assert_nothing_is_left(site, signal.SIGKILL)


def assert_nothing_is_left(site: Site, how: signal.Signals) -> None:
    """End the site while a worker of its cluster makes a pass that takes long."""
    pipe = site.home / "pipe"
    os.mkfifo(pipe)
    pass_it = f"from django_q.tasks import async_task; async_task('pathlib.Path.read_text', Path('{pipe}'))"
    site.manage("shell", "-c", f"from pathlib import Path; {pass_it}")
    writer = wait_for(lambda: os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "a worker that waits for the pipe")
    family = [process for process, _ in site.processes()]
    site.process.send_signal(how)
    site.process.wait(60)
    gone, alive = psutil.wait_procs(family, timeout=0 if how == signal.SIGINT else 60)
    os.close(writer)
    assert len(gone) > 8
    assert (how != signal.SIGINT) or "site: ending, this takes up to" in Path(site.log.name).read_text()
    assert [process.cmdline() for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
