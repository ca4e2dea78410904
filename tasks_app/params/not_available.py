"""What JEDI has and this site has not: a task that asked for it would run without it, so it is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tasks_app.params.faults import Faults, join_path
from tasks_app.params.keys import KEYS
from tasks_app.params.split_codes import CODES
from tasks_app.params.splitrule import SplitRule

RULE: Final = "not available"
"""The rule that such a parameter breaks, as clients read it."""
_NOTHING: Final = frozenset({"", "0", "off", "none", "no", "false"})


@dataclass(frozen=True, slots=True)
class NotAvailable:
    """What a parameter asks for, and what to do instead, as a sentence.

    nothing   values that ask for no more than every task gets, beside 0, false, "off" and the like
    by_no     it is asked for by these, and not by other values
    """

    asks_for: str
    instead: str
    nothing: tuple[object, ...] = ()
    by_no: bool = False

    @property
    def sentence(self) -> str:
        return f"This asks for {self.asks_for}, which this site does not offer. {self.instead}"

    def is_asked(self, value: object) -> bool:
        """Whether a value asks for it."""
        is_on = value.strip().lower() not in _NOTHING if isinstance(value, str) else bool(value)
        if self.by_no:
            return value is not None and not is_on
        return is_on and value not in self.nothing


_ON_SITE: Final = "Use mergeOutput with mergeSpec: merge jobs join the files."
_HPO: Final = "Submit a task for each round of points, and the next one when its results are there."
_STAGING: Final = "Use inputPreStaging: the site makes the rules that bring inputs from tape to disk."
_SEGMENTS: Final = "Submit a task for each segment."

NOT_AVAILABLE: Final[Mapping[str, NotAvailable]] = MappingProxyType(
    {
        "esConvertible": NotAvailable(
            "event service where it helps to fill queues",
            "Use nEventsPerWorker for a task of event service, or esFraction for a part of the tasks.",
        ),
        "mergeEsOnOS": NotAvailable(
            "merging of events in an object store",
            "Leave it out: merge jobs read what consumers have stored, wherever that is.",
        ),
        "registerEsFiles": NotAvailable(
            "files of single events in data management", "Leave it out: the outputs of the merge jobs are registered."
        ),
        "resurrectConsumers": NotAvailable(
            "jobs of event service that are revived", "Leave it out: another job goes on with what one has left."
        ),
        "switchEStoNormal": NotAvailable(
            "jobs of event service that become ordinary ones at some queues",
            "Submit two tasks, or leave out nEventsPerWorker.",
        ),
        "messageDriven": NotAvailable(
            "agents that messages wake for this task alone", "Leave it out: messages wake the agents for all tasks."
        ),
        "intermediateTask": NotAvailable(
            "a mark on the middle step of a chain",
            "Leave it out: parent_tid of the next step names the task that it reads.",
        ),
        "prestagingRuleID": NotAvailable("staging rules that others have made", _STAGING),
        "selfPrestagingRule": NotAvailable("staging rules that others have made", _STAGING),
        "remove_rule_when_done": NotAvailable(
            "removal of the copies on disk that were staged for a task when it ends",
            "Leave it out: they stay on disk, where other tasks read them.",
        ),
        "hpoWorkflow": NotAvailable("an optimisation of hyper-parameters", _HPO),
        "hpoRequestData": NotAvailable("an optimisation of hyper-parameters", _HPO),
        "onSiteMerging": NotAvailable("merging at the site of a job", _ON_SITE),
        "nEventsPerOutputFile": NotAvailable("merging at the site of a job", _ON_SITE),
        "segmentedWork": NotAvailable("inputs that are divided into segments", _SEGMENTS),
        "segmentSpecs": NotAvailable("inputs that are divided into segments", _SEGMENTS),
        "multiStepExec": NotAvailable(
            "payloads of several steps",
            "An option of prun makes them, --containerImage; the command itself can run an image where its program is installed.",
        ),
        "writeInputToFile": NotAvailable(
            "lists of inputs in files of their own", "The command line itself holds the names of the files (${IN})."
        ),
        "maxNumJobs": NotAvailable(
            "a limit on the jobs of an optimisation of hyper-parameters",
            "Use nFiles or nEvents to limit the work of a task.",
        ),
        "totNumJobs": NotAvailable(
            "a number of points of an optimisation of hyper-parameters",
            "Use nFiles or nEvents to limit the work of a task.",
        ),
        "objectStore": NotAvailable(
            "an object store for the events of event service",
            "Leave it out: pilots store them at the storage of their queue.",
        ),
        "altStageOut": NotAvailable(
            "a second storage for outputs that the first does not take",
            "Leave it out: a job whose outputs cannot be stored fails, and its files are tried again, elsewhere if need be.",
            (2,),
        ),
        "useInFilesInContainer": NotAvailable(
            "files from other datasets of the container of the dataset that is named",
            "Give the container as the dataset of the item: files are looked for in all of its datasets.",
        ),
        "putLogToOS": NotAvailable("logs in an object store", "Leave it out: logs are stored where the outputs are."),
        "usePrefetcher": NotAvailable(
            "a program that fetches inputs while the payload runs",
            "Leave it out: pilots stage inputs in, or payloads read them directly with allowInputLAN.",
        ),
        "useZipToPin": NotAvailable(
            "pins on the zip files that contain inputs", "Leave it out: inputs are copied as they are."
        ),
        "osMatching": NotAvailable(
            "queues with the operating system of the machine that submits",
            "Name the system in architecture, such as x86_64-el9-gcc13-opt.",
        ),
        "pushJob": NotAvailable(
            "jobs that a message broker brings to pilots", "Leave it out: pilots fetch jobs as soon as there are any."
        ),
        "encJobParams": NotAvailable(
            "job parameters in Base64",
            "Leave it out: parameters reach payloads as they are written, whatever characters they have.",
        ),
    }
)
"""By parameter."""
ITEMS: Final[Mapping[str, NotAvailable]] = MappingProxyType(
    {
        "pseudo": NotAvailable(
            "an input that data management does not have",
            "Use param_type pseudo_input, or noInput with pfnList for files that are named by their addresses.",
        )
    }
)
"""By key of an item."""
STEPS: Final[Mapping[str, Mapping[str, NotAvailable]]] = MappingProxyType(
    {
        "mergeSpec": {
            "useLocalIO": NotAvailable(
                "merge jobs that read their inputs over the network, where it is false",
                "Leave it out: merge jobs copy what they read to the local disk.",
                by_no=True,
            )
        }
    }
)
"""By step and key."""
_BY_CODE: Final[Mapping[str, str]] = MappingProxyType(
    {code: name for name in NOT_AVAILABLE if (code := KEYS[name].code) is not None}
)


def check_given(given: Mapping[str, Any], faults: Faults, where: str = "") -> None:
    """Add a fault for each parameter that asks for what there is not."""
    _check(given.items(), faults, where)
    for index, item in enumerate(given.get("jobParameters") or ()):
        if isinstance(item, Mapping):
            _check(item.items(), faults, join_path(where, f"jobParameters[{index}]"), ITEMS)
    for step, keys in STEPS.items():
        if isinstance(spec := given.get(step), Mapping):
            _check(spec.items(), faults, join_path(where, step), keys)


def check_rule(rule: SplitRule, faults: Faults) -> None:
    """The same for the split rule that these parameters became: refiners add to what was given."""
    _check(((name, _value_of(rule, code)) for code, name in _BY_CODE.items() if code in rule), faults)


def _check(
    asked: Iterable[tuple[str, object]],
    faults: Faults,
    where: str = "",
    table: Mapping[str, NotAvailable] = NOT_AVAILABLE,
) -> None:
    for name, value in asked:
        found = table.get(name)
        if found is not None and found.is_asked(value):
            faults.add(join_path(where, name), RULE, found.sentence)


def _value_of(rule: SplitRule, code: str) -> object:
    return rule.flag(code) if CODES[code].kind == "flag" else rule.get_int(code)
