"""People who ask."""

from __future__ import annotations

from tests.tasks_app.web.conftest import ada, reader, static_root  # noqa: F401 - the same people
