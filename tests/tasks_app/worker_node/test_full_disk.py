"""What cannot be stored: whose fault it is, and nothing of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks_app.domain.job_errors import JobError
from tasks_app.domain.retry_rules import not_stored
from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.job import Input, Output
from tasks_app.worker_node.pilot.stagein import reads_from
from tasks_app.worker_node.pilot.stageout import stage_out
from tests.lacking import lacking

STORE = """
import sys
from pathlib import Path
from tasks_app.worker_node.pilot.errors import JobFailedError
from tasks_app.worker_node.pilot.job import Input, Output
from tasks_app.worker_node.pilot.stagein import reads_from
from tasks_app.worker_node.pilot.stageout import stage_out
folder, storage = map(Path, sys.argv[1:])
try:
    stage_out(Output("out", "lab", ""), storage, folder, lambda: None)
except JobFailedError as exc:
    print(int(exc.failure.code), exc, [path.name for path in storage.rglob("*") if path.is_file()])
"""


def test_a_storage_that_is_full_is_told_of_as_such_and_keeps_nothing(tmp_path: Path) -> None:
    for name in ("job", "storage"):
        (tmp_path / name).mkdir()
    (tmp_path / "job" / "out").write_bytes(bytes(2 << 20))
    small = f'mount -t tmpfs -o size=1m none "$2" && exec {sys.executable} -c "$0" "$1" "$2"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", small, STORE]
        + [str(tmp_path / name) for name in ("job", "storage")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    if done.stderr.startswith(("unshare:", "mount:")):
        lacking(f"this machine lets nobody mount a small storage: {done.stderr}")
    said = "1137 Output out could not be stored: No space left on device []"
    assert done.stdout.strip() == said, done.stderr


def test_an_output_that_its_payload_has_left_unreadable_is_no_fault_of_the_storage(tmp_path: Path) -> None:
    for name in ("job", "storage"):
        (tmp_path / name).mkdir()
    (tmp_path / "job" / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JobFailedError, match="Output out cannot be read") as caught:
        stage_out(Output("out", "lab", ""), tmp_path / "storage", tmp_path / "job", lambda: None)
    assert caught.value.failure.code == Code.OUTPUT_MISSING


def test_a_name_that_is_taken_is_no_fault_of_the_storage_and_what_has_it_stays(tmp_path: Path) -> None:
    for name, text in (("first", "first"), ("second", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "out").write_text(text)
    (tmp_path / "storage").mkdir()
    kept = stage_out(Output("out", "lab", ""), tmp_path / "storage", tmp_path / "first", lambda: None)
    with pytest.raises(JobFailedError, match="another file of that name") as caught:
        stage_out(Output("out", "lab", ""), tmp_path / "storage", tmp_path / "second", lambda: None)
    assert caught.value.failure.code == Code.OUTPUT_EXISTS and not not_stored(
        [JobError("pilot", "1221", str(caught.value))]
    )
    assert [path.read_text() for path in (tmp_path / "storage").rglob("*") if path.is_file()] == ["first"]
    assert kept.place.path.read_text() == "first"


def test_nothing_is_stored_below_a_mount_point_at_which_nothing_is_mounted(tmp_path: Path) -> None:
    job, storage = tmp_path / "job", tmp_path / "storage"
    for folder in (job, storage):
        folder.mkdir()
    (job / "out").write_text("x")
    read = [
        Input("in", f"file://localhost{storage}/lab/in", None, None),
        Input("odd", "file://localhost%00", None, None),
    ]
    assert reads_from(read, storage) and not reads_from(read, tmp_path / "other") and not reads_from((), storage)
    with pytest.raises(JobFailedError, match="is empty, although files are registered there") as caught:
        stage_out(Output("out", "lab", ""), storage, job, lambda: None, holds_files=True)
    assert caught.value.failure.code == Code.STAGE_OUT_FAILED and not list(storage.iterdir())
    stage_out(Output("out", "lab", ""), storage, job, lambda: None)  # the first file of a new storage
    stage_out(Output("more", "lab", ""), storage, _with(job, "more"), lambda: None, holds_files=True)


def _with(folder: Path, name: str) -> Path:
    (folder / name).write_text("x")
    return folder
