"""A pytest plug-in: how the tests are shared out when several processes run them (`-n`).

Tests of whole sites mostly wait, for pilots and for watchdogs, and the others compute. So there are two processes more than
the two cores that it takes: two begin with what waits, one after the other in each, and the others with what computes longest.
With one more only, a fifth of the processors' time passed unused.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "PanDA's programs": ("tests/clients/",),
    "whole sites": (
        "tests/flow/test_demo.py",
        "tests/chaos/",
        "tests/jedisite/agents/test_agent_processes.py",
        "tests/jedisite/agents/test_cluster.py",
        "tests/tasks_app/gpi/test_scripts.py",
    ),
}
"""Files whose tests one process runs one after the other, since several of them at once would want more than the machine has."""

LONGEST_FIRST = (
    *TOGETHER["PanDA's programs"],
    *TOGETHER["whole sites"],
    "tests/browser/test_every_page.py",
    "tests/test_other_postgres.py",
    "tests/tasks_app/labs/test_bench.py",
    "tests/flow/test_hostile_payload.py",
    "tests/flow/test_job_timeouts.py",
    "tests/flow/test_watchdogs.py",
    "tests/fuzz/",
    "tests/flow/test_long_walk.py",
    "tests/test_admin",
    "tests/test_house.py",
    "tests/jedisite/server/test_web_worker.py",
    "tests/jedisite/processes/",
    "tests/tasks_app/worker_node/",
    "tests/events_app/api/test_our_pilot.py",
    "tests/flow/test_random_walk.py",
    "tests/jedisite/identity/test_identity.py",
    "tests/tasks_app/dispatch/test_report",
    "tests/tasks_app/generation/test_generating",
    "tests/tasks_app/labs/test_simul",
    "tests/tasks_app/web/tasks/test_offers.py",
    "tests/tasks_app/api/",
    "tests/browser/",
    "tests/flow/",
    "tests/tasks_app/gpi/",
    "tests/tasks_app/inputs/test_feeding.py",
    "tests/tasks_app/transforms/",
    "tests/tasks_app/web/lists/",
    "tests/test_",
)
"""Beginnings of paths. What takes minutes must not be what the others wait for at the end."""


class ByFile(LoadScopeScheduling):
    """The tests of a file stay together, so that what a file sets up is set up once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((name for name, files in TOGETHER.items() if file.startswith(files)), file)


def _place(item: pytest.Item) -> int:
    return next((place for place, path in enumerate(LONGEST_FIRST) if item.nodeid.startswith(path)), len(LONGEST_FIRST))


def pytest_collection(session: pytest.Session) -> None:
    """Before all processes import all files, each imports a part of them: what one has compiled, the others find."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    below = [session.config.invocation_params.dir / argument.partition("::")[0] for argument in session.config.args]
    root, number, count = session.config.rootpath, int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted(file for place in below for file in place.rglob("test_*.py"))[number::count]:
        # What cannot be imported is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=_place)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    config.option.loadscopereorder = False
    return ByFile(config, log)
