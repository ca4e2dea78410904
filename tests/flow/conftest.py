"""Real tables, emptied after each test: agents and pilots commit, and threads see what others committed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tasks_app.dispatch import handing_out
from tests.flow.balance import assert_books_balance
from tests.flow.driving import add_queue


@pytest.fixture
def tables(transactional_db: None) -> None:
    """The domain's tables, empty, with one queue; every statement commits."""
    handing_out._hints.clear()
    add_queue()


@pytest.fixture
def books(tables: None, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Real tables whose books balance when the test ends, and agents that met no unexpected error."""
    yield
    assert_books_balance()
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors, errors
