"""The archives that the site keeps: by names that nobody can guess, within a size, and jobs wait when theirs is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tasks_app import sandboxes
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending
from tasks_app.generating import buildstep
from tests.flow.driving import add_dataset, add_queue, jobs, parameters, reads, status, submit, task, wake


@pytest.fixture
def kept(settings: Any, tmp_path: Path) -> Callable[[], str]:
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    (tmp_path / "x.tar.gz").write_bytes(b"an archive")
    return lambda: sandboxes.keep(tmp_path / "x.tar.gz")


@pytest.mark.django_db
def test_anybody_who_knows_the_name_may_have_a_sandbox(kept: Callable[[], str]) -> None:
    name = kept()
    answer = Client().get(f"/cache/{name}")
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content) == b"an archive"  # type: ignore[attr-defined]
    assert kept() != name
    for wrong in ("sources.tar.gz", ".hidden", "..", f"{name}.part"):
        assert Client().get(f"/cache/{wrong}").status_code == 404


def test_a_sandbox_that_is_too_large_is_not_kept(
    kept: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandboxes, "LIMIT_BYTES", 5)
    with pytest.raises(sandboxes.SandboxRefusedError, match="has 10 bytes, 5 are allowed"):
        kept()
    assert not (tmp_path / "kept").exists()


def test_a_sandbox_in_use_is_marked_as_used(kept: Callable[[], str]) -> None:
    name = kept()
    path = sandboxes.path_of(name)
    assert path
    os.utime(path, (1, 1))
    assert sandboxes.lacking({"sourceURL": "http://127.0.0.1:8000"}, f"-r . -a {name} -p x") == ""
    assert path.stat().st_mtime > 1


@pytest.mark.parametrize(
    ("raw", "line", "missing"),
    [
        ({"sourceURL": "http://localhost:80"}, "-a jobO.1.tar.gz", True),
        ({"sourceURL": "http://localhost:80"}, "-l ${LIB}", False),
        ({"sourceURL": "http://localhost:80", "buildSpec": {"archiveName": "s.tar.gz"}}, "-l ${LIB}", True),
        ({"sourceURL": "http://localhost", "buildSpec": {"archiveName": "s", "tarBallViaDDM": "a:b"}}, "", False),
        ({"sourceURL": "https://elsewhere.example"}, "-a jobO.1.tar.gz", False),
        ({"sourceURL": "file:///nowhere"}, "-a jobO.1.tar.gz", True),
        ({}, "-a jobO.1.tar.gz", False),
        ({"sourceURL": "http://localhost:80"}, "--data jobO.1.tar.gz", False),
    ],
)
def test_which_sandboxes_the_site_must_have(
    kept: Callable[[], str], raw: dict[str, Any], line: str, missing: bool
) -> None:
    assert bool(sandboxes.lacking(raw, line)) == missing


def test_another_sandbox_takes_the_place_of_the_first() -> None:
    assert buildstep.with_sandbox('-j "" -a jobO.1.tar.gz -r . -p "-a%20b"', "jobO.2.tar.gz") == (
        '-j "" -a jobO.2.tar.gz -r . -p "-a%20b"'
    )
    assert buildstep.with_sandbox("-a x", None) == "-a x"
    assert buildstep.archive_of({"fixedSandbox": "new"}, "-a old") == "new"


@pytest.mark.usefixtures("transactional_db")
def test_a_task_waits_for_its_sandbox_and_says_which_it_is(kept: Callable[[], str], tmp_path: Path) -> None:
    add_queue()
    add_dataset("lab.in", 1)
    line = {"type": "constant", "value": "-a jobO.7.tar.gz --sourceURL ${SURL}"}
    made = submit(parameters("lab.t", line, reads("lab.in"), nFilesPerJob=1, sourceURL="http://127.0.0.1:8000"))
    for run in (refiner.run, feeder.run, job_generator.run):
        wake()
        run()
    assert status(made) == "pending"
    assert "jobO.7.tar.gz is not kept at http://127.0.0.1:8000" in (task(made).error_dialog or "")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "jobO.7.tar.gz").write_bytes(b"late")
    wake()
    pending.run()
    job_generator.run()
    assert len(jobs(made)) == 1
