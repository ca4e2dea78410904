from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jedisite.little_issuer import LittleIssuer, running


@pytest.fixture
def issuer() -> Iterator[LittleIssuer]:
    with running() as made:
        yield made
