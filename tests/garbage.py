"""A pytest plug-in: what all test files bring is not looked through for garbage again and again.

They make half a million objects, which stay until the end. Looking through them took a third of the time of the imports, and
afterwards each full collection would begin with them.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
