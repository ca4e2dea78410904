"""A job as PanDA's pilots read it: lists of files as texts with commas, each in the same order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tasks_app.domain.range_jobs import FINE, MERGE, RANGE_PROGRAMS, TAKING, WHOLE_PROGRAM
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.params import special_handling as handling
from tasks_app.params.merge_tags import without_merge_step
from tasks_app.worker_node.pilot.lists_of_inputs import LIST_OF_INPUTS
from tasks_app.worker_node.pilot.oneword import as_word

File = list[str | None]
"""A file of a job: the texts that the claim returns of it, in the order of the places below."""

_ROLES = {"lib": "input", "trn_output": "output", "trn_log": "log"}
"""What files of special types are to a pilot."""
TYPE, LFN, SCOPE, GUID, SIZE, CHECKSUM, DATASET, ENDPOINT, SURL = range(9)
NOTHING = "NULL"
ZIP: Final = "zipinput"
ZIP_SCOPE: Final = "transient"
PREMERGED: Final = 1000
"""PanDA's convention for the paths of files with outputs of ranges."""
CHANNEL: Final = "PILOT_EVENTRANGECHANNEL"
"""PanDA's pilots export a variable of this name to payloads in whose parameters the word stands; ours always does."""
UNSAID_SCRATCH_MB = 16_336
"""What the folder of a job may hold at a queue that does not say it, as PanDA has it."""


class AtQueue(NamedTuple):
    """The storage to which a queue writes, that for analysis, room in a job's folder (0: not said), and the names of all
    storages of this machine. `away`: how addresses of files begin that lie in a folder that is away."""

    storage: str | None = None
    analysis_storage: str | None = None
    scratch_mb: int = 0
    local: frozenset[str] = frozenset()
    away: tuple[str, ...] = ()


def described(row: tuple[Any, ...], secret: str, at: AtQueue) -> dict[str, Any]:
    """The job object at a queue. `row` is what the claim returns; without a secret the pilot's reports need none.

    `outFiles`, `realDatasets` and `ddmEndPointOut` have the log at their end, `scopeOut` and the rest have not.
    Jobs that take ranges of events have no outputs, and without a secret no log: PanDA's pilots lose it. A job that merges
    what they made reads their files, and none of its inputs; `writeToFile` says of which files each output is made.
    """
    (
        job_id,
        task_id,
        attempt,
        fence,
        transformation,
        processing_type,
        label,
        cores,
        memory_mb,
        walltime_s,
        disk_mb,
        name,
        priority,
        user,
        jobset_id,
        req_id,
        release,
        home_package,
        cmt_config,
        container,
        resource_type,
        _,
        _,
        special_handling,
        cpu_limit_s,
        transfer_type,
        nucleus,
        cloud,
        definition_id,
        event_service,
        params,
        files,
    ) = row
    storage = at.analysis_storage if label in ANALYSIS_LABELS else at.storage
    by_type: dict[str | None, list[File]] = {"input": [], "output": [], "log": []}
    for file in files:
        by_type.setdefault(_ROLES.get(file[TYPE], file[TYPE]), []).append(file)
    # Several ranges of events of one file are one file to copy.
    inputs = list({(file[DATASET], file[LFN]): file for file in by_type["input"]}.values())
    outputs, logs = by_type["output"], by_type["log"]
    # Fine-grained jobs take ranges with our pilot only.
    takes_ranges = event_service in TAKING and (event_service != FINE or bool(secret))
    if takes_ranges:
        outputs, logs = [], logs if secret else []
        transformation = _for_ranges(transformation)
    elif event_service == MERGE:
        zips = by_type.get(ZIP, [])
        inputs = [file for file in inputs if file[TYPE] == "lib"] + [_zip(file, storage) for file in zips]
    made = outputs + logs
    if nucleus is not None and storage in at.local:
        made = [_left_at(storage, at.local, file) for file in made]
    # Several keys hold the same list: each is made once, since this is done for every job that is handed out.
    datasets_in, datasets_out = _joined(inputs, DATASET), _joined(made, DATASET)
    tokens_in, tokens_out = _nothings(inputs), _nothings(made)
    endpoints_out = _joined(made, ENDPOINT, storage)
    job = {
        "StatusCode": 0,
        "PandaID": job_id,
        "taskID": task_id,
        "attemptNr": attempt,
        "jobName": name,
        "jobDefinitionID": definition_id or 0,
        "transformation": transformation,
        "jobPars": params or "",
        "processingType": processing_type,
        "prodSourceLabel": label,
        "prodUserID": user,
        "coreCount": cores or 1,
        "minRamCount": memory_mb or 0,
        "maxWalltime": walltime_s or 0,
        "maxCpuCount": cpu_limit_s or 0,
        "maxDiskCount": disk_mb or 0,
        "maxwdir": at.scratch_mb or UNSAID_SCRATCH_MB,
        "currentPriority": priority,
        "jobsetID": jobset_id or 0,
        "reqID": req_id or 0,
        "swRelease": release or NOTHING,
        "homepackage": home_package or NOTHING,
        "cmtConfig": cmt_config or NOTHING,
        "transferType": transfer_type or NOTHING,
        "nucleus": nucleus or NOTHING,
        "cloud": cloud or "",
        "sourceSite": NOTHING,
        "destinationSE": storage or NOTHING,
        "nSent": fence - 1,
        "container_name": container or "",
        "resource_type": resource_type or "",
        "inFiles": _joined(inputs, LFN),
        "scopeIn": _joined(inputs, SCOPE),
        "GUID": _joined(inputs, GUID),
        "fsize": _joined(inputs, SIZE),
        "checksum": _joined(inputs, CHECKSUM),
        "realDatasetsIn": datasets_in,
        "prodDBlocks": datasets_in,
        "prodDBlockToken": tokens_in,
        "dispatchDblock": tokens_in,
        "dispatchDBlockToken": tokens_in,
        "ddmEndPointIn": _joined(inputs, ENDPOINT, storage),
        "surlsIn": [f[SURL] for f in inputs],
        "outFiles": _joined(made, LFN),
        "realDatasets": datasets_out,
        "destinationDblock": datasets_out,
        "destinationDBlockToken": tokens_out,
        "dispatchDBlockTokenForOut": tokens_out,
        "ddmEndPointOut": endpoints_out,
        "fileDestinationSE": endpoints_out,
        "scopeOut": _joined(outputs, SCOPE),
        "logFile": _joined(logs, LFN),
        "scopeLog": _joined(logs, SCOPE),
        "logGUID": _joined(logs, GUID),
    }
    if secret:
        job |= {"fence": fence, "jobSecret": secret}
    if special_handling and handling.has(special_handling, handling.DEBUG):
        job["debug"] = "True"
    if special_handling and handling.has(special_handling, handling.AS_WRITTEN):
        job["noExecStrCnv"] = "True"
    if special_handling and handling.has(special_handling, handling.UNWATCHED):
        job["loopingCheck"] = "False"
    if takes_ranges:
        job["eventService"] = "True"
        job["jobPars"] = without_merge_step(job["jobPars"])
        if not secret and _asks_for_channel(transformation, job["jobPars"]):
            job["jobPars"] = f"--channel {CHANNEL} {job['jobPars']}"
    elif event_service == MERGE:
        job |= _of_merge(len(inputs) - len(zips), zips, outputs)
    return job


def behind_walls(job: dict[str, Any], program: str) -> dict[str, Any]:
    """The same job, begun by a program that puts up walls and then starts the job's own.

    See `tasks_app/worker_node/pilot/inner.py`.

    PanDA's pilots hand parameters to a shell, and obey some themselves: in this word there is nothing for either.
    """
    contents = (job["fsize"], job["checksum"])
    limits = [str(job[key]) for key in ("minRamCount", "maxWalltime", "maxDiskCount", "maxwdir")]
    said = (job["transformation"] or "", job["jobPars"], job["inFiles"], *limits, *contents, job["outFiles"])
    said += (job.get("writeToFile", ""),)
    return job | {"transformation": program, "jobPars": as_word(said), "container_name": ""}


def _left_at(storage: str | None, local: frozenset[str], file: File) -> File:
    """An output that goes to a nucleus is left at the queue's storage, where the mover can fetch it: both are of this machine."""
    return [*file[:ENDPOINT], storage, *file[ENDPOINT + 1 :]] if file[ENDPOINT] in local else file


def _zip(file: File, storage: str | None) -> File:
    """A file with outputs of ranges, as an input of a merge job."""
    return [*file[:SCOPE], ZIP_SCOPE, *file[SCOPE + 1 : ENDPOINT], storage, *file[ENDPOINT + 1 :]]


def _of_merge(before: int, zips: Sequence[File], outputs: Sequence[File]) -> dict[str, str]:
    """What a job that merges the outputs of ranges has besides. `before`: its inputs that come before the zip files.

    In the books the endpoint of such a file is the number of its storage, with or without the convention of its path.
    """
    stores = [(file[ENDPOINT] or "").partition("/")[0] for file in zips]
    names = ",".join([file[LFN] or "" for file in zips])
    return {
        "eventServiceMerge": "True",
        "prodDBlockToken": ",".join(
            [NOTHING] * before + [f"{store}/{PREMERGED}" if store else NOTHING for store in stores]
        ),
        "writeToFile": "^".join([f"{LIST_OF_INPUTS}{file[LFN]}:{names}" for file in outputs]),
    }


def _for_ranges(transformation: str | None) -> str | None:
    """The site's program for commands is another one for ranges, with the same options: tasks name the one that they know."""
    head, slash, name = (transformation or "").rpartition("/")
    return f"{head}{slash}event_command" if name == WHOLE_PROGRAM else transformation


def _asks_for_channel(transformation: str | None, parameters: str) -> bool:
    """Our programs for ranges take the option --channel, so that no user has to write that word."""
    return (transformation or "").rpartition("/")[2] in RANGE_PROGRAMS and CHANNEL not in parameters


def _joined(files: list[File], index: int, absent: str | None = None) -> str:
    return ",".join([absent or NOTHING if (value := f[index]) is None else value for f in files])


def _nothings(files: list[File]) -> str:
    return ",".join([NOTHING] * len(files))
