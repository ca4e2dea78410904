"""What JEDI offers and this site does not: a task that asked for it would run without it, so it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tasks_app.params.faults import Faults

MERGES: Final = "pmerge"
"""The processing type of jobs that merge."""
NOT_OFFERED: Final = {
    "nEventsPerWorker": "event service",
    "inputPreStaging": "staging of inputs from tape",
    "useJobCloning": "copies of jobs",
    "nEsConsumers": "jobs that share the events of one input",
    "fineGrainedProc": "events that are handed out one by one",
    "nJumboJobs": "jumbo jobs",
    "hpoWorkflow": "an optimisation of hyper-parameters",
    "loadXML": "job boundaries given as XML",
    "onSiteMerging": "merging at the site of a job",
    "nEventsPerOutputFile": "merging at the site of a job",
    "segmentedWork": "inputs that are divided into segments",
    "multiStepExec": "payloads of several steps",
    "writeInputToFile": "lists of inputs in files of their own",
}
"""Steps that no agent takes yet, by the parameter that asks for them."""
CLIENTS: Final = {
    "multiStepExec": "prun makes them of --containerImage; the command itself can run an image where its program is installed",
}
"""How people come to ask for a step whose parameter they never wrote, and what they can do."""


def check_offered(given: Mapping[str, Any], faults: Faults) -> None:
    """Add a fault for each step that these parameters ask for and no agent takes, and for jobs called merge jobs."""
    if given.get("processingType") == MERGES:
        said = f"{MERGES} is that of jobs which merge what others have written."
        faults.add("processingType", "reserved", said)
    for key, what in NOT_OFFERED.items():
        if given.get(key):
            more = f" ({CLIENTS[key]})" if key in CLIENTS else ""
            faults.add(key, "offered", f"This asks for {what}, which this site does not offer{more}.")
