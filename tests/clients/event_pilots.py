"""PanDA's pilot for jobs of event service: one that finds a module for the channel to its payloads, without walls."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import psutil

from tasks_app.worker_node.submitters import panda_pilots
from tasks_app.worker_node.submitters.base import PilotSpec
from tests.installation import Site

MODULE = Path(__file__).resolve().parent / "channel"
QUEUE = "EVENTS"
MAKE_QUEUE = f"""
from brokerage_app.models import Queue, QueueEndpoint
queue = Queue.objects.get(name="LOCAL")
queue.pk, queue.job_seed, queue.data = "{QUEUE}", "es", {{}}
queue.save(force_insert=True)
QueueEndpoint.objects.create(queue=queue, endpoint_id="LOCAL_SE", order_read=1, order_write=1)
"""
OURS = "event_command"


def start(site: Site, source: Path, folder: Path, token: str) -> psutil.Popen:
    """Start a pilot that takes one job of the queue, in namespaces of its own: whoever kills this process kills all of it."""
    folder.mkdir()
    panda_pilots.prepare(source, folder, token, 3)
    storage = site.home / "storage"
    environment = panda_pilots.environment(os.environ, source, folder, site.url)
    environment |= {
        "PYTHONPATH": str(MODULE),
        "YAMPL_FOLDER": str(folder),
        "HARVESTER_WORKDIR": str(folder / panda_pilots.PROGRAMS),
    }
    _give_programs(folder / panda_pilots.PROGRAMS)
    spec = PilotSpec(QUEUE, site.url)
    one_job = f"?timefloor={panda_pilots.TIME_FLOOR_MIN}"
    command = [word.replace(one_job, "") for word in panda_pilots.command(source, spec, storage)]
    with (folder / "pilot.out").open("w") as log:
        return psutil.Popen(panda_pilots.isolated(command), cwd=folder, env=environment, stdout=log, stderr=log)


def bring(folder: Path) -> list[str]:
    """Bring files with outputs of ranges to the storage. The pilot leaves them in its folder, and says where they belong.

    Returns their names.
    """
    listed = folder / "output.list"
    names = []
    for name, place in [line.split() for line in listed.read_text().splitlines()] if listed.exists() else []:
        if (folder / name).is_file() and name.endswith(".tar"):
            target = Path(place.removeprefix("file://localhost").partition(":")[0])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(folder / name, target)
            names.append(name)
    return names


def _give_programs(folder: Path) -> None:
    """The site's programs; that for ranges may import modules that are not installed."""
    for program in panda_pilots.TRANSFORMS.iterdir():
        if program.is_file():
            shutil.copy(program, folder)
    program = folder / OURS
    _, rest = program.read_text().split("\n", 1)
    program.unlink()
    program.write_text(f"#!{sys.executable}\n{rest}")
    program.chmod(0o755)
