"""The table of split-rule codes: what each means and what its value may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CodeKind = Literal["int", "flag", "enum", "signed", "text", "fields", "rules"]


@dataclass(frozen=True, slots=True)
class Code:
    """One code. `values` names the values of an enumerated code; other numbers are refused."""

    code: str
    kind: CodeKind
    meaning: str
    values: dict[int, str]


# A zero switches these off; for all other flags the code alone is enough.
NEEDS_MORE_THAN_ZERO = frozenset({"LI", "PC", "NP"})

_NUMBERS = {
    "CC": "maxCoreCount",
    "DY": "dynamicNumEvents: smallest number of events handed out",
    "EC": "nEsConsumers",
    "EI": "nEventsPerInput",
    "ES": "nEventsPerWorker",
    "FT": "offset of first event numbers",
    "LI": "useLocalIO",
    "LX": "loadXML",
    "MC": "minCpuEfficiency (%)",
    "MF": "nMaxFilesPerJob",
    "MJ": "maxJumboPerSite",
    "MN": "maxNumJobs",
    "MW": "maxWalltime (hours)",
    "MX": "maxEventsPerJob with dynamic events",
    "NE": "nEventsPerJob",
    "NF": "nFilesPerJob",
    "NG": "nGBPerJob",
    "NJ": "nJumboJobs",
    "NS": "nSitesPerJob",
    "NT": "nChunksToWait",
    "RS": "offset of random seeds",
    "RX": "retryRamOffset (MB)",
    "RY": "retryRamStep (MB)",
    "RZ": "retryRamMax (MB)",
    "SS": "scoutSuccessRate (tenths)",
    "TJ": "totNumJobs",
    "TN": "tgtMaxOutputForNG (GB)",
    "XA": "maxAttemptES",
    "XJ": "maxAttemptEsJob",
    "ZE": "nEventsPerMergeJob",
    "ZF": "nFilesPerMergeJob",
    "ZG": "nGBPerMergeJob",
    "ZM": "nMaxFilesPerMergeJob",
}

_FLAGS = {
    "AE": "allowEmptyInput",
    "AI": "allowIncompleteInDS",
    "AP": "allowPartialFinish",
    "AV": "avoidVP",
    "CV": "cloudAsVO",
    "DF": "disableAutoFinish",
    "DI": "disableReassign",
    "DM": "debugMode",
    "DR": "disableAutoRetry",
    "EJ": "encJobParams",
    "FG": "failWhenGoalUnreached",
    "FP": "fineGrainedProc",
    "HO": "hpoWorkflow",
    "IF": "inFilePosEvtNum",
    "IM": "ignoreMissingInDS",
    "IN": "intermediateTask",
    "IW": "allowInputWAN",
    "LC": "noLoopingCheck",
    "ME": "mergeEsOnOS",
    "MO": "mergeOutput",
    "MS": "multiStepExec",
    "NC": "noExecStrCnv",
    "ND": "notDiscardEvents",
    "NI": "noInputPooling",
    "NP": "noAutoPause",
    "NW": "noWaitParent",
    "OL": "orderByLB",
    "OM": "onSiteMerging",
    "OS": "osMatching",
    "OT": "onlyTagsForFC",
    "PC": "pushStatusChanges",
    "PJ": "pushJob",
    "PL": "pfnList",
    "PO": "putLogToOS",
    "RC": "runUntilClosed",
    "RE": "registerEsFiles",
    "RL": "respectLB",
    "RO": "reuseSecOnDemand",
    "RG": "releasePerGroup",
    "RP": "releasePerLB",
    "RR": "respectSplitRule",
    "SC": "resurrectConsumers",
    "SE": "switchEStoNormal",
    "SO": "stayOutputOnSite",
    "ST": "useSecrets",
    "SW": "segmentedWork",
    "UB": "useBuild",
    "UE": "useRealNumEvents",
    "UF": "useFileAsSourceLFN",
    "UT": "usePrefetcher",
    "UX": "useExhausted",
    "UZ": "useZipToPin",
    "WF": "writeInputToFile",
    "WH": "workflowHoldup",
    "WI": "waitInput",
    "XF": "decAttOnFailedES",
}

_ENUMS: dict[str, tuple[str, dict[int, str]]] = {
    "AT": ("altStageOut", {1: "on", 2: "off", 3: "force"}),
    "FU": ("fullChain", {1: "only", 2: "require", 3: "capable"}),
    "GB": (
        "groupBoundaryID",
        {1: "split, free output", 2: "split, mapped output", 3: "whole, free output", 4: "whole, mapped output"},
    ),
    "IK": ("ipStack", {4: "IPv4", 6: "IPv6"}),
    "IL": ("allowInputLAN", {1: "use", 2: "only"}),
    "IP": ("ipConnectivity", {1: "full", 2: "http"}),
    "IS": ("inputPreStaging", {0: "off", 1: "on"}),
    "LS": ("limitedSites", {1: "included", 2: "excluded", 3: "both"}),
    "OI": ("orderInputBy", {1: "eventsAlignment"}),
    "UC": ("useJobCloning", {1: "runonce", 2: "storeonce"}),
    "UP": ("usePrePro", {1: "to do", 2: "done", 3: "afterwards"}),
    "US": ("useScout", {1: "no", 2: "yes", 3: "passed"}),
}

_OTHERS: dict[str, tuple[CodeKind, str]] = {
    "AN": ("fields", "addNthFieldToLFN"),
    "DE": ("text", "ddmBackEnd"),
    "RM": ("rules", "retryModuleRules"),
    "TW": ("signed", "t1Weight"),
}

CODES: dict[str, Code] = {
    **{code: Code(code, "int", meaning, {}) for code, meaning in _NUMBERS.items()},
    **{code: Code(code, "flag", meaning, {}) for code, meaning in _FLAGS.items()},
    **{code: Code(code, "enum", meaning, values) for code, (meaning, values) in _ENUMS.items()},
    **{code: Code(code, kind, meaning, {}) for code, (kind, meaning) in _OTHERS.items()},
}

FORGOTTEN = frozenset({"FC", "IA", "IT", "MD", "RD"})
"""Codes in the rules of older tasks that say nothing here: messages wake all agents, outputs are registered for all tasks, and go
straight to the datasets that tasks name."""

# What an operator, or a re-submission, may change on a task that exists.
CHANGEABLE = frozenset(
    ["AI", "TW", "EC", "MF", "NG", "NI", "NF", "ES", "NJ", "AV", "IL", "LI", "LC", "CC", "OT", "UZ", "IM", "NP"]
)


def number_of(code: str, title: str) -> int:
    """The number that stands for a title of an enumerated code. Raises KeyError."""
    return {name: number for number, name in CODES[code].values.items()}[title]
