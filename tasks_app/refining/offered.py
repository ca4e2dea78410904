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
    "onSiteMerging": "merging at the site of a job",
    "nEventsPerOutputFile": "merging at the site of a job",
    "segmentedWork": "inputs that are divided into segments",
    "multiStepExec": "payloads of several steps",
    "writeInputToFile": "lists of inputs in files of their own",
    "maxNumJobs": "a limit on the jobs of an optimisation of hyper-parameters",
    "totNumJobs": "a number of points of an optimisation of hyper-parameters",
    "allowPartialFinish": "jobs of event service that succeed with a part of their events",
    "nSitesPerJob": "jobs of event service that share the events of one input",
    "objectStore": "an object store for the events of event service",
    "esmergeSpec": "the merge step of event service",
    "putLogToOS": "logs in an object store",
    "usePrefetcher": "a program that fetches inputs while the payload runs",
    "useZipToPin": "pins on the zip files that contain inputs",
    "osMatching": "queues with the operating system of the machine that submits",
    "pushJob": "jobs that a message broker brings to pilots",
    "encJobParams": "job parameters in Base64",
}
"""Steps that no agent takes yet, by the parameter that asks for them."""
INSTEAD: Final = {
    "multiStepExec": "prun makes them of --containerImage; the command itself can run an image where its program is installed",
    "maxNumJobs": "nFiles or nEvents limit the work of a task",
    "totNumJobs": "nFiles or nEvents limit the work of a task",
    "allowPartialFinish": "a task of which a part is enough has a goal",
    "putLogToOS": "logs are stored where the outputs are; leave it out",
    "usePrefetcher": "leave it out: pilots stage inputs in, or payloads read them directly with allowInputLAN",
    "useZipToPin": "leave it out: inputs are copied as they are",
    "osMatching": "name the system in architecture, such as x86_64-el9-gcc13-opt",
    "pushJob": "leave it out: pilots fetch jobs as soon as there are any",
    "encJobParams": "leave it out: parameters reach payloads as they are written, whatever characters they have",
}
"""What people can do instead; first, where they never wrote the parameter themselves, how they come to ask for the step."""


def check_offered(given: Mapping[str, Any], faults: Faults) -> None:
    """Add a fault for each step that these parameters ask for and no agent takes, and for jobs called merge jobs."""
    if given.get("processingType") == MERGES:
        said = f"{MERGES} is that of jobs which merge what others have written."
        faults.add("processingType", "reserved", said)
    for key, what in NOT_OFFERED.items():
        if given.get(key):
            more = f" ({INSTEAD[key]})" if key in INSTEAD else ""
            faults.add(key, "offered", f"This asks for {what}, which this site does not offer{more}.")
