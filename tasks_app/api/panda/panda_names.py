"""How PanDA calls the columns of tasks, jobs and files: its programs read these names from our answers.

A name is that of our column but for capitals. Columns that only agents use (locks, leases) are not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models

from tasks_app.models import Job, JobFile, Task

_TASK = """
jediTaskID taskName status superStatus userName creationDate modificationTime startTime endTime frozenTime
prodSourceLabel workingGroup vo coreCount taskType processingType taskPriority currentPriority
architecture transUses transHome transPath termCondition
splitRule walltime walltimeUnit outDiskCount outDiskUnit workDiskCount workDiskUnit ramCount ramUnit ioIntensity
ioIntensityUnit workQueue_ID progress failureRate errorDialog reqID oldStatus cloud site countryGroup parent_tid eventService
ticketID ticketSystemType stateChangeTime campaign mergeRamCount mergeRamUnit mergeWalltime mergeWalltimeUnit
throttledTime numThrottled mergeCoreCount goal assessmentTime cpuTime cpuTimeUnit cpuEfficiency baseWalltime amiFlag nucleus
baseRamCount ttcRequested ttcPredicted ttcPredictionDate rescueTime requestType gshare resource_type useJumbo diskIO
diskIOUnit memory_leak_core memory_leak_x2 attemptNr container_name framework activatedTime queuedTime actionTime
"""

_JOB = """
PandaID jobDefinitionID jediTaskID reqID jobsetID parentID jobName jobStatus jobSubStatus attemptNr maxAttempt failedAttempt
creationTime modificationTime stateChangeTime startTime endTime transformation processingType prodSourceLabel prodUserName
workingGroup vo computingSite computingElement cloud nucleus modificationHost destinationDBlock assignedPriority
currentPriority workQueue_ID gshare resource_type coreCount minRamCount maxWalltime maxDiskCount maxCpuCount nInputDataFiles
inputFileBytes nOutputDataFiles outputFileBytes nEvents eventService specialHandling AtlasRelease homepackage cmtConfig
container_name transferType pilotErrorCode pilotErrorDiag exeErrorCode exeErrorDiag supErrorCode supErrorDiag ddmErrorCode
ddmErrorDiag brokerageErrorCode brokerageErrorDiag jobDispatcherErrorCode jobDispatcherErrorDiag taskBufferErrorCode
taskBufferErrorDiag transExitCode cpuConsumptionTime actualCoreCount maxRSS avgRSS maxPSS avgPSS jobMetrics pilotID
pilotTiming batchID commandToPilot
"""

_FILE = """
row_ID PandaID jediTaskID datasetID fileID type lfn scope dataset destinationDBlock destinationSE GUID fsize checksum status
attemptNr
"""


def _attributes(model: type[models.Model], names: str) -> dict[str, str]:
    """Attributes of the model by PanDA's names. Raises KeyError for a name that is no column."""
    by_column = {field.column: field.attname for field in model._meta.concrete_fields}
    return {name: by_column[name.lower()] for name in names.split()}


TASK: Mapping[str, str] = _attributes(Task, _TASK)
JOB: Mapping[str, str] = _attributes(Job, _JOB)
FILE: Mapping[str, str] = _attributes(JobFile, _FILE)


def rows_told(rows: models.QuerySet[Any], names: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """The rows of a query under PanDA's names; only these columns are read."""
    return (dict(zip(names, row, strict=True)) for row in rows.values_list(*names.values()))
