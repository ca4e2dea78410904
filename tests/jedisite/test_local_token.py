"""The token of the local pilots: for their queue only, for days only, and there is always a good one in its file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from jedisite import launch
from jedisite.identity import issue_token, row_of_token
from jedisite.management.commands.up import GRACE, RENEWED_AFTER_S, RETRIED_AFTER_S, TOKEN_LIFETIME, renewing


@pytest.mark.django_db
def test_a_new_token_is_in_the_file_before_the_old_one_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(
        "jedisite.management.commands.up.connections.close_all", lambda: None
    )  # it would end the test's own
    first = issue_token("local workers", "pilot", site="LOCAL", lifetime=TOKEN_LIFETIME)
    options, now = launch.Options(home=tmp_path, port=8000, pilot_token=first), [0.0]
    launch.keep_secret(tmp_path, launch.PILOT_TOKEN, first)
    path = tmp_path / "run" / launch.PILOT_TOKEN
    renew = renewing(options, lambda: now[0])
    renew()
    assert path.read_text() == first
    now[0] = RENEWED_AFTER_S
    renew()
    row = row_of_token(path.read_text())
    assert row and (row.kind, row.site) == ("pilot", "LOCAL")
    assert timedelta(seconds=2 * RENEWED_AFTER_S) < row.expires - timezone.now() <= TOKEN_LIFETIME
    assert path.stat().st_mode & 0o777 == 0o600
    second = path.read_text()
    renew()
    assert path.read_text() == second
    now[0] *= 2
    settings.JEDI_PILOT = "panda"
    renew()
    ends = [row_of_token(token).expires - timezone.now() for token in (first, second, path.read_text())]  # type: ignore[union-attr]
    assert ends[0] <= GRACE["jedi"] < ends[1] <= GRACE["panda"] < ends[2], "a pilot of PanDA keeps the token of its start"


@pytest.mark.django_db
def test_a_token_that_cannot_be_stored_ends_neither_the_site_nor_the_old_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jedisite.management.commands.up.connections.close_all", lambda: None)
    first = issue_token("local workers", "pilot", site="LOCAL", lifetime=TOKEN_LIFETIME)
    now = [0.0]
    renew = renewing(launch.Options(home=tmp_path, port=8000, pilot_token=first), lambda: now[0])
    run = tmp_path / "run"
    run.write_text("a file where the folder of tokens should be")
    now[0] = RENEWED_AFTER_S
    renew()
    run.unlink()
    renew()
    assert not run.exists(), "it is tried again after a while"
    now[0] += RETRIED_AFTER_S
    renew()
    assert (run / launch.PILOT_TOKEN).read_text() != first
