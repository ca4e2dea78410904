"""The table of all top-level keys of a submitted task: what each is, its limits, and the split-rule code it becomes.

Widths of texts are those of the columns where they end up. Numbers that end up in nine-digit columns are limited to
nine digits. Sizes and times carry their unit in the meaning, since the names are fixed by the clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tasks_app.params.forms import (
    FIELD,
    SERVER,
    TASK_NUMBER,
    TIME,
    UNIT_OF_CPU,
    UNIT_OF_DISK,
    UNIT_OF_RAM,
    UNIT_OF_WALLTIME,
    WAYS,
)
from tasks_app.params.kinds import NINE_DIGITS, Form, Key, Kind

# Names of datasets, and of tasks, from which clients make them, end up in paths of storage systems and in comma lists of the
# pilot's protocol. No two dots in a row: as a folder they lead upwards.
NAME = Form(
    r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_.+:@/#~=-]*",
    "a name has letters from a to z, digits and _ . + : @ / # ~ = - but no blank, begins with a letter, a digit or _, and has no "
    "two dots in a row",
)
DATASETS = replace(
    NAME, wild="contains a wildcard, which is not expanded here: give whole dataset names, separated by commas"
)
"""Names of datasets that are read."""


def _text(
    name: str,
    longest: int,
    meaning: str,
    *,
    choices: tuple[str, ...] = (),
    form: Form | None = None,
    required: bool = False,
    nullable: bool = True,
    code: str | None = None,
    lines: bool = False,
) -> Key:
    return Key(
        name,
        "text",
        meaning,
        longest=longest,
        choices=choices,
        form=form,
        required=required,
        nullable=nullable,
        code=code,
        rule="own" if code else "",
        lines=lines,
    )


def _int(
    name: str, meaning: str, low: int = 0, high: int = NINE_DIGITS, code: str | None = None, own: bool = False
) -> Key:
    return Key(
        name,
        "integer",
        meaning,
        nullable=True,
        low=low,
        high=high,
        code=code,
        rule="" if code is None else "own" if own else "value",
    )


def _number(name: str, meaning: str, low: float = 0, high: float = NINE_DIGITS) -> Key:
    return Key(name, "number", meaning, nullable=True, low=low, high=high)


def _flag(name: str, meaning: str, code: str | None = None, own: bool = False) -> Key:
    return Key(name, "flag", meaning, nullable=True, code=code, rule="" if code is None else "own" if own else "flag")


def _other(
    name: str,
    kind: Kind,
    meaning: str,
    longest: int | None = None,
    code: str | None = None,
    form: Form | None = None,
    *,
    lines: bool = False,
) -> Key:
    rule: Literal["own", ""] = "own" if code else ""
    return Key(name, kind, meaning, nullable=True, longest=longest, code=code, rule=rule, form=form, lines=lines)


IDENTITY: Sequence[Key] = (
    _text("taskName", 132, "Name of the task", form=NAME, required=True, nullable=False),
    _flag("uniqueTaskName", "Refuse or re-run when the user already has a task of this name"),
    _text("userName", 128, "Owner; taken from the caller unless the caller may act for others"),
    _text("vo", 16, "Virtual organisation; selects the refiner"),
    _text("prodSourceLabel", 20, "Source label (managed, user, …); selects the refiner", required=True, nullable=False),
    _text(
        "taskType",
        64,
        "prod, anal (when left out), or test, as workflow systems send it; selects the refiner",
        choices=("prod", "anal", "test"),
    ),
    _int("taskPriority", "Assigned priority", low=-NINE_DIGITS),
    _int("currentPriority", "Starting priority, if different from the assigned one", low=-NINE_DIGITS),
    _other("architecture", "any", "Platform: x86_64-el9-gcc13-opt, or an object with cpu_specs, gpu_spec"),
    _text("transUses", 64, "Software release"),
    _text("transHome", 128, "Software cache that holds the transformation"),
    _text("transPath", 128, "Transformation to run: a name served by this site, or a URL"),
    _text("processingType", 64, "Type of processing; urgent, with the production right, is sent before all others"),
    _text("framework", 50, "Program that submitted the task"),
    _text("workingGroup", 32, "Working group that owns the task"),
    _text("countryGroup", 20, "Country group of the user"),
    _text("ticketID", 50, "Ticket about the task"),
    _text("ticketSystemType", 16, "System of that ticket"),
    _text("campaign", 32, "Campaign to which the task belongs"),
    _text("container_name", 200, "Container image of the payload"),
    _text("nucleus", 52, "Site that gathers the outputs"),
    _int("reqID", "Number of the request; the task's own number when left out or 0", high=10**12),
    _text("cloud", 10, "Cloud of the task; WORLD lets a nucleus be chosen"),
    _text("site", 60, "Run only on these sites (comma text)"),
    _text("workQueueName", 16, "Work queue to use instead of the one found by criteria"),
    _text("gshare", 32, "Global share to use instead of the one found by criteria"),
    _number(
        "goal",
        "Percentage that is enough: looked at each hour, the task is finished then, once every file was tried",
        high=100,
    ),
    _text("ttcrTimestamp", 40, "Requested time of completion (YYYY-mm-dd HH:MM:SS.ffffff)", form=TIME),
    _text("osInfo", 256, "Operating system of the submitting machine"),
    _flag("noThrottle", "Never throttle the task for its failed attempts"),
    _int("parent_tid", "Task whose outputs this one reads; 0 = none", high=10**12),
    _text("parentTaskName", 132, "Name of that task"),
    _flag("official", "Official task of a group"),
    _text("sourceURL", 256, "Server that keeps the sandbox; fills ${SURL}", form=SERVER),
    _text("cliParams", 200_000, "Command line that made the task", lines=True),
    _flag("noEmail", "Send no mail when the task ends"),
)

RESOURCES: Sequence[Key] = (
    _int("coreCount", "Cores per job; 0 = any number", high=10_000),
    _int("walltime", "Wall time in s to choose queues by, no limit; negative: no looping check", low=-NINE_DIGITS),
    _text("walltimeUnit", 32, "Unit of walltime", choices=UNIT_OF_WALLTIME),
    _number("cpuTime", "CPU time per event, in cpuTimeUnit"),
    _text("cpuTimeUnit", 32, "Unit of cpuTime", choices=UNIT_OF_CPU),
    _int(
        "cpuEfficiency", "Share of one core's power that is used, in per cent; 0 = wall time does not scale", high=100
    ),
    _int("baseWalltime", "Part of the wall time that does not scale with events, in seconds"),
    _int("ramCount", "Memory in ramUnit"),
    _text("ramUnit", 32, "Unit of ramCount", choices=UNIT_OF_RAM),
    _text("ramCountUnit", 32, "Same as ramUnit", choices=UNIT_OF_RAM),
    _int("baseRamCount", "Memory that does not scale with cores, in MB"),
    _int("mergeRamCount", "Memory of a merge job, in MB; 0 = not set"),
    _int("mergeCoreCount", "Cores of a merge job; default or 0: 1", high=10_000),
    _int("outDiskCount", "Size of outputs in outDiskUnit, per MB of input or per event"),
    _text("outDiskUnit", 32, "Unit of outDiskCount", choices=UNIT_OF_DISK),
    _int("workDiskCount", "Size of the work folder in workDiskUnit"),
    _text("workDiskUnit", 32, "Unit of workDiskCount", choices=("B", "kB", "MB", "GB")),
    _int("ioIntensity", "Input and output rate in ioIntensityUnit"),
    _text("ioIntensityUnit", 32, "Unit of ioIntensity", choices=("kBPerS",)),
)

SPLITTING: Sequence[Key] = (
    _int("nFilesPerJob", "Exact number of input files per job", low=1, high=1000, code="NF", own=True),
    _int("nEventsPerJob", "Events per job, and size of the slices of files", low=1, code="NE", own=True),
    _int("tgtNumEventsPerJob", "Target events per job; files are cut into even slices", low=1, code="NE", own=True),
    _int("nEventsPerInputFile", "Events in each input file", low=1, code="EI", own=True),
    _int("nEventsPerFile", "Same as nEventsPerInputFile", low=1, code="EI", own=True),
    _int(
        "nGBPerJob", "Largest inputs, outputs and work folder of a job, in GB (1024³)", low=1, high=100_000, code="NG"
    ),
    _int("nMaxFilesPerJob", "Maximum number of input files per job (default: 200)", low=1, high=1000, code="MF"),
    _int("maxEventsPerJob", "Maximum number of events per job when the number is dynamic", low=1, code="MX"),
    _int("minGranularity", "Smallest number of events that can be handed out", low=1, code="DY", own=True),
    _int("nEventsPerRange", "Same as minGranularity", low=1, code="DY", own=True),
    _int("maxWalltime", "Longest expected wall time of a job, in hours", low=1, high=10_000, code="MW"),
    _int("tgtMaxOutputForNG", "Target size in GB of the largest output, after scouting", 1, 100_000, "TN"),
    _int("nFilesPerMergeJob", "Files per merge job", low=1, high=1000, code="ZF"),
    _int("nEventsPerMergeJob", "Events per merge job", low=1, code="ZE"),
    _int("nGBPerMergeJob", "Largest size of a merge job, in GB", low=1, high=100_000, code="ZG"),
    _int("nMaxFilesPerMergeJob", "Maximum number of files per merge job (default: 50)", low=1, high=1000, code="ZM"),
    _int("maxNumJobs", "Maximum number of jobs of an optimisation of hyper-parameters", low=1, code="MN"),
    _int("totNumJobs", "Number of points of an optimisation of hyper-parameters", low=1, code="TJ"),
    _int("nChunksToWait", "Number of jobs for which inputs must be pending before they are released", low=1, code="NT"),
    _int("nFiles", "Maximum number of input files to use", low=1),
    _int("nEvents", "Maximum number of events to use", low=1, high=10**12),
    _int("nEventsPerOutputFile", "Events in each output file of merging on site", low=1),
    _other(
        "addNthFieldToLFN",
        "names",
        "Fields (from 1) of the input dataset's name that ${MIDDLENAME} puts into output names, each behind a dot",
        longest=4,
        code="AN",
        form=FIELD,
    ),
)

VALUE_CODES: Sequence[Key] = (
    _int("scoutSuccessRate", "Share of scouts that must succeed, in tenths", high=10, code="SS"),
    _int("t1Weight", "Weight of the nucleus; -1 = run there only", low=-1_000_000, high=1_000_000, code="TW"),
    _int("minCpuEfficiency", "Minimum CPU efficiency of scouts, in per cent", high=100, code="MC"),
    _int("maxCoreCount", "Maximum number of cores per job", low=1, high=10_000, code="CC"),
    _int("retryRamOffset", "Memory of a first retry by the retry action memory_xtimes, in MB", code="RX"),
    _int(
        "retryRamStep",
        "Step of memory from there to the next retry, in MB; without retryRamOffset, memory × this / ramCount",
        low=1,
        code="RY",
    ),
    _int("retryRamMax", "Maximum memory of a retry, in MB", low=1, code="RZ"),
    _int("nEventsPerWorker", "Events in an event range", low=1, code="ES"),
    _int("nEsConsumers", "Jobs that share the events of one input", low=1, high=1000, code="EC"),
    _int("nSitesPerJob", "Sites that share the events of one input", low=1, high=1000, code="NS"),
    _int("maxAttemptES", "Attempts of an event range", high=999, code="XA"),
    _int("maxAttemptEsJob", "Attempts of an event-service job", high=999, code="XJ"),
    _int("nJumboJobs", "Jumbo jobs of the task", high=10_000, code="NJ"),
    _int("maxJumboPerSite", "Jumbo jobs per site", low=1, high=10_000, code="MJ", own=True),
)

CHOICES: Sequence[Key] = (
    _flag("skipScout", "Run without scout jobs", code="US", own=True),
    _flag("forceStaged", "Copy inputs to local disk, as useLocalIO does", code="LI", own=True),
    _flag("useLocalIO", "Copy inputs to local disk instead of reading them over the network", code="LI", own=True),
    _text("loadXML", 1_000_000, "Groups of files, with commands and outputs, as XML", code="LX", lines=True),
    _int("groupBoundaryID", "Files in groups: 1, 2 jobs of one group; 3, 4 a group is one job", 1, 4, "GB", own=True),
    _text("ddmBackEnd", 32, "Data management system: the site has one", choices=("rucio",), code="DE"),
    _text(
        "ipConnectivity",
        20,
        "Network that the payload needs",
        choices=("full", "http", "full#IPv4", "full#IPv6", "http#IPv4", "http#IPv6"),
        code="IP",
    ),
    _text(
        "altStageOut",
        10,
        "Store outputs elsewhere when the first place fails",
        choices=("on", "off", "force"),
        code="AT",
    ),
    _text("allowInputLAN", 10, "Read inputs over the local network", choices=("use", "only"), code="IL"),
    _text("useJobCloning", 10, "Run copies of each job", choices=("runonce", "storeonce"), code="UC"),
    _text(
        "fullChain",
        10,
        "Keep the whole chain of tasks at the nucleus",
        choices=("only", "require", "capable"),
        code="FU",
    ),
    _text("orderInputBy", 20, "Order of inputs", choices=("eventsAlignment",), code="OI"),
    _flag("mergeOutput", "Merge the outputs of several jobs into one file", code="MO"),
    _flag("hpoWorkflow", "The task optimises hyper-parameters", code="HO", own=True),
    _flag("segmentedWork", "The inputs are divided into named segments", code="SW", own=True),
    _other("pfnList", "names", "Physical names of the input files", longest=4000, code="PL"),
    _other("multiStepExec", "object", "Commands of the steps of the payload", code="MS", lines=True),
)

_FLAGS: Sequence[tuple[str, str, str]] = (
    ("allowEmptyInput", "AE", "An empty input dataset is not an error"),
    ("allowIncompleteInDS", "AI", "Make jobs though no storage has all files of an input"),
    ("allowInputWAN", "IW", "Read inputs from storage of other sites, at queues that allow it"),
    ("allowPartialFinish", "AP", "Jobs of event service succeed with a part of their events"),
    ("avoidVP", "AV", "No virtual placement of inputs"),
    ("cloudAsVO", "CV", "The cloud is a virtual organisation: jobs carry it, and it limits no queues"),
    ("debugMode", "DM", "Pilots send the payload's output while it runs"),
    ("decAttOnFailedES", "XF", "Only failures use up attempts of a range, not jobs that end without reporting it"),
    ("disableAutoRetry", "DR", "Try each input once"),
    ("disableAutoFinish", "DF", "An exhausted task is never finished by the site, however long it waits"),
    ("disableReassign", "DI", "Jobs stay at their site"),
    ("encJobParams", "EJ", "Encode job parameters in Base64"),
    (
        "failWhenGoalUnreached",
        "FG",
        "The task fails when its goal is not reached; without goal, when not all of its input was processed",
    ),
    ("fineGrainedProc", "FP", "Each event is a range: a job that is lost loses only events not yet reported"),
    ("ignoreMissingInDS", "IM", "Go on without input datasets that do not exist"),
    ("inFilePosEvtNum", "IF", "Event numbers count inside the file, as always with this site's own program"),
    ("inputPreStaging", "IS", "Bring inputs on tape to disk first; jobs are made by bunches (nChunksToWait)"),
    ("intermediateTask", "IN", "A middle step of a chain"),
    ("mergeEsOnOS", "ME", "Merge events in the object store"),
    ("noAutoPause", "NP", "Never pause the task by itself"),
    ("noExecStrCnv", "NC", "PanDA's pilots add no set-up of a release to the command line, which has its own"),
    ("noInputPooling", "NI", "Do not wait to pool inputs"),
    ("noLoopingCheck", "LC", "Payloads without output are not stopped"),
    ("noWaitParent", "NW", "Start while the parent task still runs"),
    ("notDiscardEvents", "ND", "A file that is tried again keeps its ranges that are processed"),
    ("onSiteMerging", "OM", "Merge outputs on the site"),
    ("onlyTagsForFC", "OT", "Match fat containers by tags only"),
    ("orderByLB", "OL", "Order inputs by luminosity block"),
    ("osMatching", "OS", "Run at queues with the operating system of the submitting machine"),
    ("pushJob", "PJ", "A message broker brings jobs to pilots"),
    ("pushStatusChanges", "PC", "Publish each change of state"),
    ("putLogToOS", "PO", "Store logs in the object store"),
    ("registerEsFiles", "RE", "Register files of events"),
    ("releasePerGroup", "RG", "Release inputs group by group, and wait for all files of the others"),
    ("releasePerLB", "RP", "Release inputs per luminosity block"),
    ("respectLB", "RL", "A job never crosses a luminosity block"),
    ("respectSplitRule", "RR", "Scouts keep the splitting rules"),
    ("resurrectConsumers", "SC", "Revive event-service jobs"),
    ("reuseSecOnDemand", "RO", "Use secondary files again also while their dataset gets more; of a closed one always"),
    ("runUntilClosed", "RC", "Run until the input dataset is closed"),
    ("stayOutputOnSite", "SO", "Outputs stay at the storage of the queue where they are made"),
    ("switchEStoNormal", "SE", "Turn event-service jobs into normal ones"),
    ("useExhausted", "UX", "A production task that ends below its goal is exhausted and waits for a decision"),
    ("useFileAsSourceLFN", "UF", "Take name fields from the file, not the dataset"),
    ("usePrefetcher", "UT", "Fetch inputs while the payload runs"),
    ("useRealNumEvents", "UE", "Use the number of events known of each file"),
    ("useSecrets", "ST", "Give the user's secrets to the payload"),
    ("useZipToPin", "UZ", "Pin the zip files that contain inputs"),
    ("waitInput", "WI", "Wait for inputs that do not exist yet"),
    (
        "workflowHoldup",
        "WH",
        "The task works on the files that are there and those added later, and ends after the command release",
    ),
    ("writeInputToFile", "WF", "Hand the list of inputs over in a file"),
)
FLAGS: Sequence[Key] = tuple(_flag(name, meaning, code) for name, code, meaning in _FLAGS)

LATER: Sequence[Key] = (
    _flag("messageDriven", "Messages drive job generation"),
    _flag("noInput", "The task reads no dataset; jobs are made from nEvents or nFiles"),
    Key("jobParameters", "items", "What the command line of a job is made of, in order", required=True, lines=True),
    _other("log", "any", "Template of the log files: one object or a list", lines=True),
    _other("log_merge", "any", "Template of the log files of merge jobs: one object or a list", lines=True),
    _other(
        "mergeSpec",
        "object",
        "The merge step; its jobParameters have ${TRN_OUTPUT:OUTPUT}: in1,in2:out for each output",
        lines=True,
    ),
    _other("buildSpec", "object", "The build step", lines=True),
    _other("preproSpec", "object", "The preprocessing step", lines=True),
    _other("esmergeSpec", "object", "The merge step of event service", lines=True),
    _other("periodic", "object", "Make jobs on a schedule; needs noInput, not nEvents and nFiles", lines=True),
    _text("fixedSandbox", 256, "Sandbox to use from now on"),
    _int("maxAttempt", "Attempts of each input; 0: the default of 3", low=0, high=999),
    _int("maxFailure", "Failures after which an input is not tried again", low=1, high=999),
    _other(
        "skipFilesUsedBy", "names", "Numbers of tasks whose finished inputs are left out", longest=20, form=TASK_NUMBER
    ),
    _flag("useInFilesInContainer", "Look for named files in the container, and not only in the dataset that is named"),
    _flag("useInFilesWithNewAttemptNr", "Named files may have another attempt number at the end of their names"),
    _flag("getNumEventsInMetadata", "Same as useRealNumEvents, without nEventsPerInputFile"),
    _flag("skipShortInput", "Leave out incomplete tails of inputs"),
    _flag("skipShortOutput", "Make no job that would be incomplete; the log of the task names the files left out"),
    _flag("panda_data_carousel", "Same as inputPreStaging"),
    _flag("toStaging", "Same as inputPreStaging"),
    _flag("remove_rule_when_done", "Remove the staging rule at the end"),
    _other("prestagingRuleID", "object", "Staging rule of each dataset"),
    _text("selfPrestagingRule", 255, "Staging rule that the submitter made"),
    _flag("umNameAtEnd", "Names of unmerged files end in .panda.um instead of beginning with panda.um."),
    _text("objectStore", 100, "Object store of event service"),
    _other("segmentSpecs", "items", "Segments: name, id, files or datasets"),
    _other("includedSite", "names", "Run on these sites only", longest=60),
    _other("excludedSite", "names", "Never run on these sites", longest=60),
    _text("destination", 60, "Storage endpoint of all outputs that name none"),
    _text("transferType", 20, "How inputs are read remotely", form=WAYS),
    _text("tarBallViaDDM", 512, "Sandbox as dataset:file, which each job reads besides its inputs"),
    _number("esFraction", "Share of tasks to turn into event service", high=1),
    _flag("esConvertible", "The task may be turned into event service"),
    _flag("taskBrokerOnMaster", "The nucleus is chosen by the master dataset only"),
    _other("hpoRequestData", "object", "Request of the optimisation service", lines=True),
)

GROUPS: Sequence[tuple[str, Sequence[Key]]] = (
    ("identity", IDENTITY),
    ("resources", RESOURCES),
    ("splitting", SPLITTING),
    ("behaviour", (*VALUE_CODES, *CHOICES, *FLAGS)),
    ("steps and items", LATER),
)
KEYS: dict[str, Key] = {key.name: key for _, keys in GROUPS for key in keys}

DS_FOR = "dsFor"
DS_FOR_KEY = Key(
    "dsFor<STREAM>", "names", "More datasets for that input stream", nullable=True, longest=255, form=DATASETS
)


def stream_of_ds_for(name: str) -> str | None:
    """`IN` of `dsForIN`; None for other keys."""
    stream = name.removeprefix(DS_FOR)
    return stream if stream and stream != name and stream.replace("_", "").isalnum() else None
