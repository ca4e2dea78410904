"""What is said, and noted at the local queue, of walls round payloads. The programs that build them are stood in for."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from brokerage_app.grid.describing import view_of
from brokerage_app.grid.local_twin import QUEUE, ensure_local_site
from brokerage_app.models import Queue
from tasks_app.dispatch.unwalled import lacks, note
from tests.locks import FOR_NO_KEY_UPDATE, waits

pytestmark = pytest.mark.django_db
WHY = "bwrap cannot make namespaces here: bwrap: no namespaces"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which bubblewrap makes namespaces, until it is told otherwise."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    program(folder, "bwrap", "exit 0")
    program(folder, "setpriv", "exit 0")
    ensure_local_site(tmp_path / "storage")
    return folder


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def said() -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("walls", stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("pilot", ["jedi", "panda"])
def test_a_machine_without_walls_is_named_where_people_look(
    tools: Path, settings: Any, client: Client, pilot: str
) -> None:
    settings.JEDI_PILOT = pilot
    program(tools, "bwrap", "echo 'bwrap: no namespaces' >&2; exit 1")
    assert said() == (
        "",
        f"Payloads cannot be isolated from this machine: {WHY}. Local pilots run only jobs of the site's "
        "administrators; other jobs stay queued.\n",
    )
    assert lacks(QUEUE).walls and Queue.objects.get(pk=QUEUE).data["unwalled"] == WHY
    client.force_login(User.objects.create_user("ada"))
    page = client.get("/workers/").content.decode()
    assert "Pilots of LOCAL run only jobs of the site's administrators; other jobs stay queued." in page
    assert f"Payloads are not isolated from the machine: {WHY}." in page
    program(tools, "bwrap", "exit 0")
    out, err = said()
    assert (err, lacks(QUEUE).walls) == ("", False)
    words = {"jedi": "Payloads run in", "panda": "PanDA's pilots run in"}
    assert out.startswith(f"{words[pilot]} namespaces of their own, as ")
    seen = view_of(Queue.objects.get(pk=QUEUE)).no_channel
    assert ("channel for event ranges" in seen) is (pilot == "panda"), "brokers keep event service from there"
    assert lacks(QUEUE).channel is (pilot == "panda"), "and such pilots get no job that takes ranges"
    assert "administrators" not in client.get("/workers/").content.decode()


def test_a_machine_whose_walls_hold_no_others_has_none_for_pandas_pilots(tools: Path, settings: Any) -> None:
    settings.JEDI_PILOT = "panda"
    program(tools, "bwrap", "case \"$*\" in *bwrap*) echo 'bwrap: no more' >&2; exit 1;; esac")
    why = "isolation inside an isolated process is not possible here: bwrap: no more"
    assert said()[1].startswith(f"Payloads cannot be isolated from this machine: {why}.") and lacks(QUEUE).walls
    settings.JEDI_PILOT = "jedi"
    assert said()[1] == "" and not lacks(QUEUE).walls


def test_pandas_pilots_without_walls_are_not_started_for_a_queue_at_which_it_cannot_be_noted(
    tools: Path, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JEDI_PILOT, settings.JEDI_PANDA_PILOT_DIR = "panda", str(tmp_path)
    program(tools, "bwrap", "echo 'bwrap: no namespaces' >&2; exit 1")
    monkeypatch.setenv("JEDI_SERVER_URL", "http://127.0.0.1:1")
    with pytest.raises(
        CommandError, match=r"no pilot is started: There is no queue 'LOCLA'. Did you mean LOCAL\?"
    ) as said:
        call_command("local_workers", queue="LOCLA")
    assert said.value.returncode == 2
    monkeypatch.setenv("JEDI_PILOT_TOKEN", "of another machine")
    with pytest.raises(
        CommandError, match=r"isolated from this machine \(bwrap.*\), and the site has no queue NOWHERE"
    ):
        call_command("local_workers", queue="NOWHERE")
    with pytest.raises(CommandError, match=r"pilot\.py is missing"):
        call_command("local_workers")
    assert lacks(QUEUE).walls


@pytest.mark.django_db(transaction=True)
def test_a_description_that_changes_at_this_moment_keeps_that_change(tmp_path: Path) -> None:
    ensure_local_site(tmp_path)
    waits(
        ("queues", "name", QUEUE),
        lambda: note(QUEUE, WHY),
        then="UPDATE queues SET data = data || '{\"timefloor\": 60}' WHERE name = %s",
        values=[QUEUE],
        held=FOR_NO_KEY_UPDATE,
    )
    data = Queue.objects.get(pk=QUEUE).data
    assert (data["timefloor"], data["unwalled"]) == (60, WHY)
    assert note(QUEUE, "") and "unwalled" not in Queue.objects.get(pk=QUEUE).data
