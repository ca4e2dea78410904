"""Names of files in a job's folder that are the pilot's and the site's own: no input and no output may have them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from tasks_app.worker_node.pilot.job import Job

OF_PILOT = frozenset(
    {"payload.stdout", "payload.stderr", "payload.channel", "pilot.log", "panda_secrets.json", "jobReport.json", "tmp"}
)
SANDBOX = re.compile(r"(sources|jobO)\..*\.tar(\.gz)?")
"""How PanDA's clients name sandboxes."""
SANDBOX_OPTIONS = {"./build_command": "-i"}
"""How transforms are told their sandbox; the others with -a."""


def reserved_for(name: str) -> str:
    """What a file of that name would stand in the way of; "" for a name that outputs may have."""
    if name in OF_PILOT or name.startswith("payload."):
        return "the pilot's own files"
    return "sandboxes" if SANDBOX.fullmatch(name) else ""


def sandbox_of(argv: Sequence[str]) -> str:
    """The sandbox that a command line names; "" for none."""
    option = SANDBOX_OPTIONS.get(argv[0], "-a")
    # Behind "--" there is a user's command.
    words = argv[: argv.index("--")] if "--" in argv else argv
    found = [value for word, value in pairwise(words) if word == option]
    if argv[0].endswith("_command"):  # these read -aNAME as well
        found += [word.removeprefix(option) for word in words if word.startswith(option) and word != option]
    return found[-1].rpartition("/")[2] if found else ""


def clash(job: Job, program: str, sandbox: str) -> str:
    """A sentence on an input whose name is that of something else in the job's folder; "" when there is none.

    `program` is "" when it is to come as an input.
    """
    taken = dict.fromkeys(OF_PILOT, "a file of the pilot") | {file.lfn: "an output of the job" for file in job.outputs}
    if job.log:
        taken[job.log.lfn] = "the log of the job"
    taken |= {sandbox: "the sandbox of the job", program: "the program of the job"}
    for file in job.inputs:
        if file.lfn in taken:
            return f"Input {file.lfn} has the same name as {taken[file.lfn]}; rename the file, or leave it out of the inputs"
        taken[file.lfn] = "another input of the job"
    return ""
