"""A real browser (the system's chromium) on a live server with filled tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.lacking import lacking
from tests.tasks_app.web.conftest import (  # noqa: F401 - the same filled tables as the pages' own tests
    ada,
    busy_task,
    failed_job,
    operator,
    reader,
    sites,
    static_root,
)
from tests.tasks_app.web.tasks.test_task_tabs import moved  # noqa: F401

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, NARROW = (1440, 900), (390, 844)

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
        lacking("chromium is not installed")
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


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer, operator: Client) -> Iterator[Any]:  # noqa: F811
    """A function that opens an address as the operator; afterwards no page may have complained in the console."""
    contexts, complaints = [], []

    def open_at(path: str, *, size: tuple[int, int] = WIDE, theme: str = "light") -> Page:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)  # type: ignore[arg-type]
        contexts.append(context)
        session = operator.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        answer = page.goto(live_server.url + path)
        assert answer is not None and answer.ok, f"{path} was answered with {answer and answer.status}"
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []
