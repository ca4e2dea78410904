"""PanDA's own pilot as a process of this machine. No Django, no database; Linux.

At the end of a job that pilot kills every process of its user whose parent is process 1, anywhere on the machine. So it is
told not to (PILOT_NOKILL) and lives in a pid namespace of its own, in which it sees nothing but what it started; when
the namespace's first process ends, the kernel ends all others in it. Without a namespace it is not started.

It starts payloads itself, so walls stand round it and its payload together, and inside of these others round the payload:
the site puts a program before each of its jobs, which puts them up (see `tasks_app/worker_node/pilot/inner.py`). It sees
the storage's files, and what it would write there goes to a folder of its own, from which its starter takes it (see
`outbox.py`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tasks_app.worker_node.pilot import walls
from tasks_app.worker_node.pilot.inner import SETTINGS
from tasks_app.worker_node.pilot.walls import JOB, Walls
from tasks_app.worker_node.submitters.base import PilotSpec

SCRIPT = "pilot.py"
CONFIGURATION = Path("pilot", "util", "default.cfg")
VERSION = "PILOTVERSION"
TAKEN = "3.7."
"""The version that is run in the tests; all jobs of 3.11 that local workers started were seen to fail."""
ORIGIN = "jedi.pilot"
"""Who the token is of, as PanDA's servers read it; here the token says that itself."""
ANY_LABEL = "unified"
EMPTY_ANSWERS = 1000
"""How often a pilot asks in vain before it ends; it sleeps a minute between. It counts twice: since its last job, and in all."""
TIME_FLOOR_MIN = 60
"""So long a pilot goes on with another job at once, where its queue does not say: from one pilot to the next a slot is
empty for most of a minute."""
TRANSFORMS = Path(__file__).resolve().parents[2] / "transforms"
CODE = Path(walls.__file__).resolve().parent
PRIVATE = 0o600
INPUTS = "/inputs"
"""Where a pilot behind walls finds the storage's files."""
PAYLOADS = "payloads"
"""Folder of a pilot with those of its payloads."""
PROGRAMS = "programs"
"""Folder of a pilot with what its jobs begin with."""
INNER = "/site/tasks_app"
"""Where that program finds the code for walls, and the site's programs."""
FIRST_PROGRAM = """#!/usr/bin/env -S python3 -I
import sys
sys.path.insert(0, "/site")
from tasks_app.worker_node.pilot.inner import main
sys.exit(main(sys.argv[1:]))
"""
OUTBOX = "outbox"
"""Folder of a pilot that holds what it has written to the storage."""


class CannotIsolateError(Exception):
    """This machine gives no pid namespace, or the pilot is not where it is said to be; the text says which."""


def isolated(command: list[str]) -> list[str]:
    """The command in namespaces of its own, which end when `unshare` is killed."""
    # Who is not root gets namespaces only with a user namespace, in which they stay who they are.
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc", "--", *command]


def find_walls(source: Path, readable: Sequence[str], hidden: Sequence[str]) -> Walls | str:
    """Walls for this pilot, in which others can stand; or a sentence on why there are none. It needs the network for itself."""
    own = [str(source)] if source.is_dir() else []
    found = walls.find(readable=[*own, *readable], hidden=hidden, network=True)
    if isinstance(found, str):
        return found
    found = replace(found, nests=True)
    said = walls.tried(found.around(Walls(readable=tuple(readable)).around(["true"], None), None))
    return f"isolation inside an isolated process is not possible here: {said}" if said else found


def walls_of(found: Walls, number: int, folder: Path, storage: Path) -> Walls:
    """Those of one pilot, for which `prepare` has been called; `number` is one that no other pilot of today has."""
    mine = replace(found.of_another(number), links=((f"{JOB}/{OUTBOX}", str(storage)),))
    shown = [
        (str(storage), INPUTS),
        (str(TRANSFORMS), f"{INNER}/transforms"),
        (str(CODE), f"{INNER}/worker_node/pilot"),
    ]
    if mine.uid is not None:
        # It asks `whoami` who it is, and `ps` for the processes of that name.
        (folder / "passwd").write_text(f"payload:x:{mine.uid}:{mine.uid}::{JOB}/home:/bin/sh\n")
        shown.append((str(folder / "passwd"), "/etc/passwd"))
    return replace(mine, shown=tuple(shown))


def check(source: Path, *, walled: bool = False) -> None:
    """Raises CannotIsolateError unless the pilot in the folder `source` can be started here. Walls are namespaces enough."""
    for path in (source / SCRIPT, source / CONFIGURATION):
        if not path.is_file():
            raise CannotIsolateError(
                f"{path} is missing: JEDI_PANDA_PILOT_DIR is the unpacked source of panda-pilot, not its wheel"
            )
    version = (source / VERSION).read_text().strip() if (source / VERSION).is_file() else ""
    if version and not version.startswith(TAKEN):
        raise CannotIsolateError(
            f"{source} is panda-pilot {version}, with which local workers are not tested and jobs may fail: "
            f"JEDI_PANDA_PILOT_DIR should be one of {TAKEN}x (docs/pilots.md)"
        )
    if walled:
        return
    why = "it is not installed"
    if shutil.which("unshare"):
        done = subprocess.run(isolated(["true"]), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 0:
            return
        why = done.stderr.strip() or f"it ends with {done.returncode}"
    raise CannotIsolateError(
        "PanDA's pilot kills processes of its user anywhere on the machine, so it is started only in a pid "
        f"namespace, which unshare(1) cannot make here: {why}"
    )


def prepare(source: Path, folder: Path, token: str, heartbeat_s: float, begins_with: str = "") -> None:
    """Put into the pilot's folder what it reads at its start: the token, and its settings with our heartbeat.

    `begins_with`: the name of the program with which its jobs begin.
    """
    for name in ("home", "tmp", OUTBOX, PROGRAMS, PAYLOADS):
        (folder / name).mkdir()
    if begins_with:
        (folder / PROGRAMS / begins_with).write_text(FIRST_PROGRAM)
    with open(os.open(folder / "token", os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w") as file:
        file.write(token)  # without a newline: the pilot puts the text into a command
    text = (source / CONFIGURATION).read_text()
    period = max(1, round(heartbeat_s))
    (folder / "pilot.cfg").write_text(re.sub(r"(?m)^(heartbeat|debug_heartbeat): \d+$", rf"\g<1>: {period}", text))


def command(source: Path, spec: PilotSpec, inputs: Path | str) -> list[str]:
    """How the pilot is started, in namespaces; `inputs` is the folder of the storage from which inputs are linked."""
    server = urlsplit(spec.server)
    host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
    port = server.port or {"https": 443}.get(server.scheme, 80)
    options = ["-q", spec.queue, "-j", spec.label or ANY_LABEL, "-w", "generic", "--pilot-user", "generic", "-t", "-u"]
    options += ["--url", f"{server.scheme}://{host}", "-p", str(port)]
    options += [
        "--queuedata-url",
        f"{spec.server}/cache/schedconfig/{{pandaqueue}}.all.json?timefloor={TIME_FLOOR_MIN}",
    ]
    options += ["--storagedata-url", spec.server + "/cache/ddmendpoints.json", "--use-rucio-traces", "False"]
    options += ["--input-destination-dir", str(inputs), "--getjobrequests", str(EMPTY_ANSWERS)]
    options += ["--getjobfailures", str(EMPTY_ANSWERS)]
    if spec.keep:
        options += ["--cleanup", "False"]
    return [sys.executable, str(source / SCRIPT), *options]


def inner(spec: PilotSpec, folder: Path) -> dict[str, str]:
    """What the program needs to know that puts walls round payloads, and where the pilot finds it."""
    sees = {"readable": spec.readable, "network": spec.network, "payloads": str(folder / PAYLOADS)}
    told = {"server": spec.server, "programs": f"{INNER}/transforms", "memory_mb": spec.memory_mb, **sees}
    return {SETTINGS: json.dumps(told), "HARVESTER_WORKDIR": str(folder / PROGRAMS)}


def environment(outer: Mapping[str, str], source: Path, folder: Path, server: str) -> dict[str, str]:
    """`outer`, our environment without our secrets, with what the pilot needs to know; `folder` as it finds its own."""
    return {
        **outer,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), outer.get("PATH", os.defpath)]),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "CURL_HOME": str(folder / "home"),
        "PILOT_NOKILL": "1",
        "PILOT_SOURCE_DIR": str(source),
        "HARVESTER_PILOT_CONFIG": str(folder / "pilot.cfg"),
        "HARVESTER_WORKDIR": str(TRANSFORMS),  # where its plug-in takes transforms from instead of asking CERN
        "LOCAL_AGIS_SCHEDCONF": f"{server}/cache/pandaqueues.json",
        "OIDC_AUTH_TOKEN": "token",
        "OIDC_AUTH_ORIGIN": ORIGIN,
        "OIDC_AUTH_DIR": f"{folder}/",
    }
