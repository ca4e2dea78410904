"""A pytest plug-in: how the tests are shared out when several processes run them (`-n`)."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

WHOLE_MACHINE = (
    "tests/chaos/",
    "tests/flow/test_demo.py",
    "tests/jedisite/test_agent_processes.py",
    "tests/jedisite/test_cluster.py",
    "tests/tasks_app/test_bench.py",
    "tests/test_other_postgres.py",
)
"""Each of these wants all cores for itself: one process runs them one after the other."""


class ByFile(LoadScopeScheduling):
    """The tests of a file stay together, so that what a file sets up is set up once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "whole machine" if file.startswith(WHOLE_MACHINE) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    config.option.loadscopereorder = False  # the long ones come early, as they are named
    return ByFile(config, log)
