"""A real browser (the system's chromium) on a live server with filled tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.tasks_app.dashboard.conftest import (  # noqa: F401 - the same filled tables as the pages' own tests
    ada,
    busy_task,
    failed_job,
    operator,
    reader,
    sites,
    static_root,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; a test that wants it is skipped where it is not installed, unless JEDI_TEST_ALL is set."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("JEDI_TEST_ALL"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    # The browser's event loop runs in this thread; Django would take that for asynchronous code.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=SWITCHES)
        yield started
        started.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
