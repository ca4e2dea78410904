"""The archives that the site keeps: by names that nobody can guess, within a size, and jobs wait when theirs is not there."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tasks_app import sandboxes
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending
from tasks_app.generating import buildstep
from tasks_app.models import Sandbox, Task
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, status, submit, task, wake

ARCHIVE = gzip.compress(b"an archive", mtime=0)


@pytest.fixture
def kept(settings: Any, tmp_path: Path) -> Callable[[], str]:
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    (tmp_path / "x.tar.gz").write_bytes(ARCHIVE)
    return lambda: sandboxes.keep(tmp_path / "x.tar.gz", "ada")


@pytest.mark.django_db
def test_anybody_who_knows_the_name_may_have_a_sandbox(kept: Callable[[], str]) -> None:
    name = kept()
    answer = Client().get(f"/cache/{name}")
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content) == ARCHIVE  # type: ignore[attr-defined]
    assert kept() != name
    for wrong in ("sources.tar.gz", ".hidden", "..", f"{name}.part"):
        assert Client().get(f"/cache/{wrong}").status_code == 404


@pytest.mark.django_db
def test_a_sandbox_that_is_too_large_is_not_kept(
    kept: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandboxes, "LIMIT_BYTES", 5)
    with pytest.raises(sandboxes.SandboxRefusedError, match="has more than 5 bytes"):
        kept()
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.django_db
def test_a_sandbox_in_use_is_dated_anew_and_knows_the_task(
    kept: Callable[[], str], make_task: Callable[..., Task]
) -> None:
    name, made = kept(), make_task()
    day = timezone.now() - timedelta(days=1)
    Sandbox.objects.update(last_used=day)
    for _ in range(2):
        assert sandboxes.lacking(made.id, {"sourceURL": "http://127.0.0.1:8000"}, f"-r . -a {name} -p x") == ""
    row = Sandbox.objects.get()
    assert row.last_used > day and list(row.tasks.all()) == [made]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("raw", "line", "missing"),
    [
        ({"sourceURL": "http://localhost:80"}, "-a jobO.1.tar.gz", True),
        ({"sourceURL": "http://localhost:80"}, "-l ${LIB}", False),
        ({"sourceURL": "http://localhost:80", "buildSpec": {"archiveName": "s.tar.gz"}}, "-l ${LIB}", True),
        ({"sourceURL": "http://localhost", "buildSpec": {"archiveName": "s", "tarBallViaDDM": "a:b"}}, "", False),
        ({"sourceURL": "https://elsewhere.example"}, "-a jobO.1.tar.gz", False),
        ({"sourceURL": "file:///nowhere"}, "-a jobO.1.tar.gz", False),
        ({}, "-a jobO.1.tar.gz", False),
        ({"sourceURL": "http://localhost:80"}, "--data jobO.1.tar.gz", False),
    ],
)
def test_which_sandboxes_the_site_must_have(
    kept: Callable[[], str], raw: dict[str, Any], line: str, missing: bool
) -> None:
    assert bool(sandboxes.lacking(1, raw, line)) == missing


def test_another_sandbox_takes_the_place_of_the_first() -> None:
    assert buildstep.with_sandbox('-j "" -a jobO.1.tar.gz -r . -p "-a%20b"', "jobO.2.tar.gz") == (
        '-j "" -a jobO.2.tar.gz -r . -p "-a%20b"'
    )
    assert buildstep.with_sandbox("-a x", None) == "-a x"
    assert buildstep.archive_of({"fixedSandbox": "new"}, "-a old") == "new"


@pytest.mark.usefixtures("transactional_db")
def test_a_task_waits_for_its_sandbox_and_says_which_it_is(kept: Callable[[], str]) -> None:
    add_queue()
    add_dataset("lab.in", 1)
    line = {"type": "constant", "value": "-a jobO.7.tar.gz --sourceURL ${SURL}"}
    made = submit(parameters("lab.t", line, reads("lab.in"), nFilesPerJob=1, sourceURL="http://127.0.0.1:8000"))
    for run in (refiner.run, feeder.run, job_generator.run):
        wake()
        run()
    assert status(made) == "pending"
    assert "jobO.7.tar.gz is not kept at http://127.0.0.1:8000" in (task(made).error_dialog or "")
    late = sandboxes.Incoming("ada", "jobO.7.tar.gz")
    late.write(ARCHIVE)
    late.finish()
    wake()
    pending.run()
    job_generator.run()
    assert len(jobs(made)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_removed_keeps_none_of_the_others(kept: Callable[[], str]) -> None:
    bad, good = (Sandbox.objects.get(name=kept()) for _ in range(2))
    bad.path.unlink()
    bad.path.mkdir()
    assert sandboxes.remove([bad.pk, good.pk]) == 2
    assert bad.path.is_dir() and not good.path.exists() and not Sandbox.objects.exists()
