"""How far staging is, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tasks_app.inputs.rules.staged import Progress, staging_in_words

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("progress", "speed"),
    [
        (Progress(40, 12, 3.2), "about 3 arrive a minute"),
        (Progress(40, 12, 1.0), "about one arrives a minute"),
        (Progress(40, 12, 0.5), "about 30 arrive an hour"),
        (Progress(40, 12, 0.01), "about one arrives an hour"),
        (Progress(40, 40, 0.0), "none has arrived yet"),
        (Progress(40, 12, 0.0, is_new=True), "none has arrived yet"),
        (Progress(40, 12, 0.0), "none arrived in the last 10 minutes"),
    ],
)
def test_how_many_files_arrive_is_said_as_roughly_as_it_is_known(progress: Progress, speed: str) -> None:
    said = staging_in_words(progress, NOW)
    assert said == f"waits for {progress.left} of 40 files from tape, {speed} (as of 12:00:05 UTC)"
