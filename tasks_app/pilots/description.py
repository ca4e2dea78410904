"""A job as PanDA's pilots read it: lists of files as texts with commas, each in the same order. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tasks_app import handling

File = list[str | None]
"""A file of a job: the texts that the claim returns of it, in the order of the places below."""

_ROLES = {"lib": "input", "trn_output": "output", "trn_log": "log"}
"""What files of special types are to a pilot."""
_TYPE, _LFN, _SCOPE, _GUID, _SIZE, _CHECKSUM, _DATASET, _ENDPOINT, _SURL = range(9)
NOTHING = "NULL"


def described(row: tuple[Any, ...], secret: str) -> dict[str, Any]:
    """The job object. `row` is what the claim returns; without a secret the pilot's reports need none.

    `outFiles`, `realDatasets` and `ddmEndPointOut` have the log at their end, `scopeOut` and the rest have not.
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
        special_handling,
        cpu_limit_s,
        transfer_type,
        nucleus,
        cloud,
        definition_id,
        storage,
        params,
        files,
    ) = row
    by_type: dict[str | None, list[File]] = {"input": [], "output": [], "log": []}
    for file in files or ():
        by_type.setdefault(_ROLES.get(file[_TYPE], file[_TYPE]), []).append(file)
    # Several ranges of events of one file are one file to copy.
    inputs = list({(file[_DATASET], file[_LFN]): file for file in by_type["input"]}.values())
    outputs, logs = by_type["output"], by_type["log"]
    made = outputs + logs
    # Several keys hold the same list: each is made once, since this is done for every job that is handed out.
    datasets_in, datasets_out = _joined(inputs, _DATASET), _joined(made, _DATASET)
    tokens_in, tokens_out = _nothings(inputs), _nothings(made)
    endpoints_out = _joined(made, _ENDPOINT, storage)
    job = {
        "StatusCode": 0,
        "PandaID": job_id,
        "taskID": task_id,
        "attemptNr": attempt,
        "fence": fence,
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
        "inFiles": _joined(inputs, _LFN),
        "scopeIn": _joined(inputs, _SCOPE),
        "GUID": _joined(inputs, _GUID),
        "fsize": _joined(inputs, _SIZE),
        "checksum": _joined(inputs, _CHECKSUM),
        "realDatasetsIn": datasets_in,
        "prodDBlocks": datasets_in,
        "prodDBlockToken": tokens_in,
        "dispatchDblock": tokens_in,
        "dispatchDBlockToken": tokens_in,
        "ddmEndPointIn": _joined(inputs, _ENDPOINT, storage),
        "surlsIn": [f[_SURL] for f in inputs],
        "outFiles": _joined(made, _LFN),
        "realDatasets": datasets_out,
        "destinationDblock": datasets_out,
        "destinationDBlockToken": tokens_out,
        "dispatchDBlockTokenForOut": tokens_out,
        "ddmEndPointOut": endpoints_out,
        "fileDestinationSE": endpoints_out,
        "scopeOut": _joined(outputs, _SCOPE),
        "logFile": _joined(logs, _LFN),
        "scopeLog": _joined(logs, _SCOPE),
        "logGUID": _joined(logs, _GUID),
    }
    if secret:
        job["jobSecret"] = secret
    if special_handling and handling.has(special_handling, handling.DEBUG):
        job["debug"] = "True"
    return job


def behind_walls(job: dict[str, Any], program: str) -> dict[str, Any]:
    """The same job, begun by a program that puts up walls and then starts the job's own: see `tasks_app/pilot/inner.py`.

    PanDA's pilots hand parameters to a shell, and obey some themselves: in these words there is nothing for either.
    """
    contents = (job["fsize"], job["checksum"])
    said = (job["transformation"] or "", job["jobPars"], job["inFiles"], str(job["maxDiskCount"]), *contents)
    words = [f".{quote(text, safe='')}" for text in said]
    return job | {"transformation": program, "jobPars": " ".join(words), "container_name": ""}


def _joined(files: list[File], index: int, absent: str | None = None) -> str:
    return ",".join([absent or NOTHING if (value := f[index]) is None else value for f in files])


def _nothings(files: list[File]) -> str:
    return ",".join([NOTHING] * len(files))
