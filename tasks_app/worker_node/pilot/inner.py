"""Walls within walls: what PanDA's pilot starts as a job's program, when that pilot runs behind walls itself.

The site hands it out in the place of the job's own program, under a name that nobody can guess. It runs that program behind
walls of its own, in a folder of its own: without network, without sight of the pilot, its token and the rest of the storage.
That folder is not below the pilot's for the job, of which the pilot packs all that it finds into the log, and follows each link.
All that the job says comes in one word without a sign that a shell or the pilot would make something of. No Django.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tasks_app.worker_node.pilot import safe_names as names
from tasks_app.worker_node.pilot.copying import content_of
from tasks_app.worker_node.pilot.errors import Code, JobFailedError
from tasks_app.worker_node.pilot.gauge import FIRST_LOOK_S, LOOK_EVERY_S, Gauge, free_mb, holes_kb
from tasks_app.worker_node.pilot.job import BadJobError, Input, inputs_of, is_plain_name
from tasks_app.worker_node.pilot.job_folders import TO_CHANGE, UnseenError, walk
from tasks_app.worker_node.pilot.job_limits import NO_GRACE, Limits, memory_limit_mb, verdict, with_disk
from tasks_app.worker_node.pilot.latch import Latch, wait_any
from tasks_app.worker_node.pilot.lists_of_inputs import lists_in, write_lists
from tasks_app.worker_node.pilot.masking import mask_file, mask_printed, needles_of
from tasks_app.worker_node.pilot.oneword import of_word
from tasks_app.worker_node.pilot.payload import SECRETS, TEMPORARY, command_line, fetch_sandbox
from tasks_app.worker_node.pilot.processes import Family, adopt_orphans, tie_to_pilot
from tasks_app.worker_node.pilot.removing import remove_folder
from tasks_app.worker_node.pilot.site_client import Client, InterruptedCallError
from tasks_app.worker_node.pilot.stagein import compare
from tasks_app.worker_node.pilot.walls import JOB, Walls, limit, obey, refused_calls

SETTINGS = "JEDI_INNER_WALLS"
"""Variable with a JSON object: `server`, `programs` (folder of the site's), `payloads` (folder for theirs, on the file system of
the pilot's), `readable`, `network`, `memory_mb` (of the slot; 0: not set)."""
SERVED = "/trf/user/"
"""Where servers of PanDA keep programs, in addresses of them."""
KEPT = frozenset(
    {
        "PandaID",
        "PANDAID",
        "PanDA_TaskID",
        "PanDA_AttemptNr",
        "ATHENA_CORE_NUMBER",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    }
)
"""Variables of the pilot that the program gets beside those that every payload does."""
ASK_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1)
SIGN_OF_LIFE = "payload.writes"
"""File in the pilot's folder for the job: that pilot ends jobs in whose folder nothing changes for hours."""
GRACE_S = 2.0
"""PanDA's pilot waits 3 s between SIGTERM and SIGKILL."""
PATIENCE_S = 600.0
REFUSED = 1


def main(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """In the pilot's folder for the job. The exit code is the program's, above 128 for a signal, or 1 with a sentence on stderr.

    The one of `words` holds texts: the job's program, its parameters, its inputs with commas between, its memory (MB), wall
    time (s) and disk (MB), the disk that the queue gives (MB), sizes and checksums of the inputs, its outputs, and its lists of
    inputs (`writeToFile`), as the job's description has them.
    """
    terminated = Latch()
    told: list[int] = []
    here = Path.cwd()
    settings = json.loads(environ[SETTINGS])
    folder = Path(tempfile.mkdtemp(prefix="payload-", dir=settings["payloads"]))

    def ask(number: int, _frame: object) -> None:
        told.append(number)
        for secrets in (here / SECRETS, folder / SECRETS):
            with contextlib.suppress(OSError):
                secrets.unlink()  # first of all: whoever sends signals may not wait for the rest
        terminated.set()

    for number in ASK_TO_END:
        signal.signal(number, ask)
    adopt_orphans()
    program, parameters, inputs, memory_mb, wall_s, disk_mb, queue_mb, sizes, sums, made, lists = of_word(*words)
    own: set[str] = {TEMPORARY}
    needles: list[bytes] = []
    code = REFUSED
    try:
        files = _inputs(inputs, sizes, sums)
        wanted = _lists(lists)
        write_lists(wanted, folder)
        own |= wanted.keys()
        limits = Limits(memory_limit_mb(int(memory_mb), settings["memory_mb"]), int(wall_s))
        limits = with_disk(limits, int(disk_mb), int(queue_mb), free_mb(folder))
        family, process = _start(
            program, parameters, files, here, folder, environ, settings, limits, terminated, own, needles
        )
        served = _is_served(program, settings)
        outputs = [folder / name for name in made.split(",") if is_plain_name(name)]
        code = _watch(family, process, limits, outputs, here, folder, terminated, served=served)
    except JobFailedError as exc:
        sys.stderr.write(f"{exc.failure.diag}\n")
    except InterruptedCallError:
        pass  # told to end before the program was started
    except OSError as exc:
        sys.stderr.write(f"The job's folder could not be made: {exc}\n")
    finally:
        (here / SECRETS).unlink(missing_ok=True)
        sys.stderr.flush()
        mask_printed(needles)
        with contextlib.suppress(OSError):
            if needles:
                mask_file(str(folder / "jobReport.json"), needles)
        bring_back(folder, here, own)
        remove_folder(folder)
        Path(sys.argv[0]).unlink(missing_ok=True)  # else it would be in the log
    return 128 + told[0] if told else code


def _inputs(names: str, sizes: str, sums: str) -> tuple[Input, ...]:
    """Raises JobFailedError."""
    nowhere = [""] * len(list(filter(None, names.split(","))))
    try:
        return inputs_of({"inFiles": names, "fsize": sizes, "checksum": sums, "surlsIn": nowhere})
    except BadJobError as exc:
        raise JobFailedError(Code.STAGE_IN_FAILED, f"The job's inputs are not consistent: {exc}") from exc


def _lists(text: str) -> dict[str, list[str]]:
    """Raises JobFailedError."""
    try:
        return lists_in(text)
    except BadJobError as exc:
        raise JobFailedError(Code.STAGE_IN_FAILED, f"The job's lists of inputs make no sense: {exc}") from exc


def _check(file: Input, here: Path, go_on: Callable[[], None]) -> None:
    """Raises JobFailedError unless an input is there with the content that the server expects: the pilot, which has linked
    it, looks for its scope and name only. Also what `go_on` raises, which is called all the time."""
    try:
        found = content_of(here / file.lfn, go_on)
    except OSError as exc:
        said = f"Input {file.lfn} cannot be read: {exc.strerror or exc}. The pilot reads only the storage and JEDI_PAYLOAD_READS"
        raise JobFailedError(Code.INPUT_MISSING, said) from exc
    compare(file, found)


def _is_served(transformation: str, settings: Mapping[str, Any]) -> bool:
    """Whether a job's program is one of the site's."""
    name = transformation.rpartition("/")[2]
    meant = transformation == name or transformation.endswith(SERVED + name)
    return meant and is_plain_name(name) and (Path(settings["programs"]) / name).is_file()


def _start(
    transformation: str,
    parameters: str,
    files: Sequence[Input],
    here: Path,
    folder: Path,
    environ: Mapping[str, str],
    settings: Mapping[str, Any],
    limits: Limits,
    terminated: Latch,
    own: set[str],
    needles: list[bytes],
) -> tuple[Family, subprocess.Popen[bytes]]:
    """The running program. `own` gets the names of files that are not for the pilot, `needles` what nobody is to read.

    Raises JobFailedError, InterruptedCallError when it was told to end before the program was started.
    """

    def go_on() -> None:
        if terminated.is_set:
            raise InterruptedCallError

    inputs = [file.lfn for file in files]
    name, served = transformation.rpartition("/")[2], _is_served(transformation, settings)
    if not served and transformation not in inputs:
        diag = f"{transformation!r} is neither a program of the site nor an input of the job"
        raise JobFailedError(Code.TRANSFORM_NOT_AVAILABLE, diag)
    argv = command_line(name, parameters)
    sandbox = names.sandbox_of(argv)
    for lfn in inputs:
        if lfn == sandbox or (served and lfn == name) or names.reserved_for(lfn) or lfn in own:
            taken = f"Input {lfn} has the same name as another file in the job's folder; rename the input"
            raise JobFailedError(Code.STAGE_IN_FAILED, taken)
    for file in files:
        _check(file, here, go_on)
    (folder / TEMPORARY).mkdir()
    shutil.copyfile(Path(settings["programs"]) / name if served else here / name, folder / name)
    (folder / name).chmod(0o755)
    fetch_sandbox(argv, folder, Client(settings["server"], ""), patience_s=PATIENCE_S, until=(terminated,))
    if (here / SECRETS).is_file():
        needles += needles_of((here / SECRETS).read_text(errors="replace"))
        os.rename(here / SECRETS, folder / SECRETS)
    shown = [(str((here / lfn).resolve()), f"{JOB}/{lfn}") for lfn in inputs if lfn != name and (here / lfn).is_file()]
    own |= {name, sandbox, SECRETS, *inputs}
    walls = Walls(readable=tuple(settings["readable"]), network=settings["network"], shown=tuple(shown))
    path = {"PATH": environ.get("PATH", os.defpath), "PanDA_Server": settings["server"]}
    env = walls.environment(environ) | {key: value for key, value in environ.items() if key in KEPT} | path
    fuses = limit(limits.memory_mb, limits.disk_mb, folder)
    family = Family()
    go_on()
    with refused_calls() as refused:
        process = subprocess.Popen(
            walls.around(argv, folder, refused),
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=tie_to_pilot(partial(obey, fuses)),
            pass_fds=refused,
        )
    return family, process


def _watch(
    family: Family,
    process: subprocess.Popen[bytes],
    limits: Limits,
    outputs: Sequence[Path],
    here: Path,
    folder: Path,
    terminated: Latch,
    *,
    served: bool,
) -> int:
    """Wait for the end of the program, and see to what the pilot cannot see: how much it uses, and that it writes at all.

    `served`: the program is the site's, which asks what it starts to end when it is asked itself.
    Raises JobFailedError when it passes a limit. None of its processes is left either way.
    """
    gauge, written, over, pause_s = Gauge(family, folder), 0, None, FIRST_LOOK_S
    pidfd, sign = os.pidfd_open(process.pid), here / SIGN_OF_LIFE
    try:
        while over is None and not wait_any((terminated,), pause_s, pidfd):
            pause_s = min(pause_s * 2, LOOK_EVERY_S)
            over = verdict(last := gauge.measure(), limits)
            if last.disk_kb != written:
                written = last.disk_kb
                sign.touch()
    finally:
        grace_s = GRACE_S if terminated.is_set or (over and over.code not in NO_GRACE) else 0.0
        family.end(process.pid, grace_s=grace_s, asks_its_own=served, spare_leader=True)
        os.close(pidfd)
        sign.unlink(missing_ok=True)
    code = process.wait()
    last = replace(gauge.final(0), holes_kb=holes_kb(outputs))
    if over := over or verdict(last, replace(limits, memory_mb=0, wall_s=0)):
        raise JobFailedError(over.code, over.diag)
    return code if code >= 0 else 128 - code


def bring_back(folder: Path, here: Path, own: set[str]) -> None:
    """What the program has left goes to where the pilot looks for it, but for names in `own` and for what is there already.

    The pilot opens it with its own rights: so nothing goes there that leads elsewhere, or that would hold up who reads it.
    """
    for entry in list(os.scandir(folder)):
        target = here / entry.name
        if entry.name in own or os.path.lexists(target):
            continue
        if not (_cleaned(Path(entry.path)) if entry.is_dir(follow_symlinks=False) else _harmless(entry.path)):
            continue
        with contextlib.suppress(OSError):
            os.rename(entry.path, target)


def _cleaned(folder: Path) -> bool:
    """Remove what leads out of a folder or is no file, also where the program took away its own rights. False, with a sentence
    on stderr, when not all of it can be seen."""

    def look(above: int, entry: os.DirEntry[str]) -> None:
        if not entry.is_dir(follow_symlinks=False) and not _harmless(entry.name, above):
            os.unlink(entry.name, dir_fd=above)

    try:
        walk(folder, look, TO_CHANGE)
    except UnseenError as exc:
        sys.stderr.write(f"The folder {folder.name!a} is not kept: {exc}\n")
        return False
    return True


def _harmless(name: str, above: int | None = None) -> bool:
    """A plain file, or a link that leads nowhere but further down."""
    mode = os.lstat(name, dir_fd=above).st_mode
    if stat.S_ISLNK(mode):
        leads = os.readlink(name, dir_fd=above)
        return not leads.startswith("/") and ".." not in leads.split("/")
    return stat.S_ISREG(mode)
