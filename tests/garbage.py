"""A pytest plug-in: what all test files bring is not looked through for garbage again and again.

They make half a million objects, which stay until the end. Looking through them took a third of the time of the imports, and
afterwards each full collection would begin with them. Each request of a test makes and drops thousands, few of them in circles.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest

MOST_NEW = 20_000
"""Objects that are made before the youngest are looked through: 700 by default."""


gc.disable()  # from now on: Django and the site are imported before the tests are


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(MOST_NEW)
        gc.enable()
