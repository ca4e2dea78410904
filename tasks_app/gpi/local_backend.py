"""The backend Local: subjobs run on this machine, several at once, and go on when the script has ended."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tasks_app.gpi import local_runner
from tasks_app.gpi.backends import Backend, Piece, State
from tasks_app.gpi.components import Component
from tasks_app.gpi.ganga_errors import JobError
from tasks_app.gpi.job_parts import INPUT_LIST, GangaDataset, sandbox_files, whole_names
from tasks_app.gpi.job_store import is_locked, write_json
from tasks_app.gpi.rules.master_status import FAILED, FINAL, KILLED, SUBMITTED

log = logging.getLogger("gpi")
ENDS_WITHIN_S = 10.0
"""A kill waits so long until it is known how the subjob ended."""
LOST = "its runner on this machine has ended before it"


class Local(Backend):
    """`workers`: how many run at once, 0 for one for each core; `nice`: added to their niceness."""

    fields: ClassVar[Mapping[str, Any]] = {"workers": 0, "nice": 0}
    is_bulk = False
    poll_s = 0.2

    def files_of(self, data: Component) -> list[Any]:
        if not isinstance(data, GangaDataset):
            raise JobError(f"the backend Local reads files of this machine (GangaDataset), not {type(data).__name__}")
        return data.expanded()

    def prepare(self, piece: Piece) -> None:
        """Lay out the folder of one subjob. Raises JobError when it cannot run."""
        job, folder = piece.job, piece.folder
        job.application.check(here=True)
        names = whole_names(job.outputfiles)
        attempt = piece.attempt
        for name in ("work", "output"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("kill", "state.json", "round"):
            (folder / name).unlink(missing_ok=True)
        for name, path in sandbox_files([job]).items():
            shutil.copy2(path, folder / "work" / name)
        for name, text in job.application.extra_files(piece.number).items():
            (folder / "work" / name).write_text(text)
        read = self.files_of(job.inputdata) if job.inputdata is not None else []
        for one in read:
            (folder / "work" / one.namePattern).symlink_to(one.path)
        if job.inputdata is not None:
            (folder / "work" / INPUT_LIST).write_text("".join(f"{one.namePattern}\n" for one in read))
        call = {
            "words": job.application.words(piece.number),
            "env": {
                **job.application.env,
                "SUBJOB": str(piece.number),
                "INPUTS": " ".join(f.namePattern for f in read),
            },
            "outputs": names,
            "attempt": attempt,
        }
        write_json(folder / "call.json", call)

    def start(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        """Start a runner for subjobs that are prepared; it is alive when this returns. Raises JobError."""
        number = 1 + max((int(p.name) for p in place.glob("rounds/*") if p.name.isdecimal()), default=0)
        round_folder = place / "rounds" / str(number)
        round_folder.mkdir(parents=True)
        workers = self.workers or os.cpu_count() or 1
        folders = [str(piece.folder) for piece in pieces]
        write_json(round_folder / "round.json", {"workers": workers, "nice": self.nice, "folders": folders})
        for piece in pieces:
            (piece.folder / "round").write_text(str(number))
        started = subprocess.run(
            [sys.executable, local_runner.__file__, str(round_folder)], capture_output=True, text=True, check=False
        )
        if started.returncode:
            raise JobError(f"the runner of local jobs did not start: {started.stderr[-500:]}")

    def resubmit(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        for piece in pieces:
            self.prepare(piece)
        self.start(job, pieces, place)

    def states(self, job: Any, pieces: Sequence[Piece], place: Path) -> list[State]:
        """What became of the subjobs, in order."""
        living: dict[str, bool] = {}
        return [self._state(piece.folder, place, living) for piece in pieces]

    def _state(self, folder: Path, place: Path, living: dict[str, bool]) -> State:
        # Whether the runner lives is asked first: what it wrote before its end counts.
        number = _text(folder / "round")
        if number not in living:
            living[number] = bool(number) and is_locked(place / "rounds" / number / "alive")
        said = _json(folder / "state.json")
        status = said.get("status", SUBMITTED)
        if status not in FINAL and not living[number]:
            said = _json(folder / "state.json")
            status = said.get("status", SUBMITTED)
            if status not in FINAL:
                killed = (folder / "kill").exists()
                return State(KILLED if killed else FAILED, error="" if killed else LOST)
        return State(status, said.get("exit_code"), said.get("error", ""))

    def kill(self, job: Any, pieces: Sequence[Piece], place: Path) -> None:
        for piece in pieces:
            (piece.folder / "kill").touch()
        end = time.monotonic() + ENDS_WITHIN_S
        while time.monotonic() < end and any(s.status not in FINAL for s in self.states(job, pieces, place)):
            time.sleep(local_runner.LOOK_S)

    def outputs(self, job: Any, pieces: Sequence[Piece], place: Path) -> dict[int, Path]:
        return {piece.number: piece.folder / "output" for piece in pieces}


def _text(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""


def _json(path: Path) -> dict[str, Any]:
    text = _text(path)
    return dict(json.loads(text)) if text else {}
