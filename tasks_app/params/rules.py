"""Rules that span several keys. Each is one function; none speaks when a key that it reads has a fault already."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

from brokerage_app.formulas.architecture import faults_of
from jedisite.vocabulary.words import sentence, thousands
from tasks_app.params import combinations
from tasks_app.params.buildstep import LABEL
from tasks_app.params.dataset_attributes import IN_CVMFS, fault_of
from tasks_app.params.event_service import AGAINST, CLONES, FINE, ONLY_WITH, SWITCH, event_service, kind_of
from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.group_rules import blocks, by_group, groups
from tasks_app.params.items import PREPROCESSED, SERIAL, Item
from tasks_app.params.kinds import split_names
from tasks_app.params.naming import BadNameTemplate, NameTemplate
from tasks_app.params.placeholders import NEVER_FILLED, OF_GROUPS, VALUE_NAMES, bad_placeholders, is_ours, names_in
from tasks_app.params.schedule import is_cron, moment
from tasks_app.worker_node.pilot.safe_names import reserved_for

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

STEPS = ("buildSpec", "mergeSpec", "preproSpec", "esmergeSpec")
MERGE_EXAMPLE = '{"transPath": "merge_command", "jobParameters": "${TRN_OUTPUT:OUTPUT} ${TRN_LOG:LOG}"}'
"""A merge step that joins outputs of all kinds, and logs."""
"""Steps that have a command line."""
BUILD_STREAMS = frozenset({"IN", "OUT"})
BUILD_VALUES = frozenset({"LIB", "SURL"})
PREPRO_STREAMS = frozenset({"LOG0"})
Rule = Callable[["TaskParams", Faults], None]


def some_work(params: TaskParams, faults: Faults) -> None:
    """Without input, something must say how much there is to do; with input, an item must name it."""
    if params.flag("noInput"):
        if not any(
            params.given(n)
            for n in ("nEvents", "nFiles", "totNumJobs", "pfnList", "hpoRequestData", "periodic", "loadXML")
        ):
            faults.add("noInput", "amount of work", "With noInput, nEvents or nFiles must give the amount of work.")
    elif not any(i.is_template and i.param_type in ("input", "pseudo_input") for i in params.items):
        faults.add(
            "jobParameters",
            "some input",
            "A task needs an item with param_type input, or noInput true with nEvents or nFiles.",
        )


def amount(params: TaskParams, most: int, faults: Faults) -> None:
    """Work is cut into at most so many pieces, as far as the parameters alone say it."""
    events, size = params.whole("nEvents", 0) or 0, _events_of_a_piece(params) or 0
    if params.flag("noInput"):
        found = {"nFiles": params.whole("nFiles", 0) or 0, "nEvents": -(-events // size) if size else 0}
    else:
        # At least one file is read. How many there are is found out later.
        in_file = 0 if params.flag("useRealNumEvents") else params.events_per_input or 0
        found = {"nEventsPerJob": -(-min(in_file, events or in_file) // size) if size and size < in_file else 0}
    for name, pieces in found.items():
        if pieces > most:
            said = f"A task may have {thousands(most)} pieces of work, not {thousands(pieces)}"
            hint = (
                "give a larger nEventsPerJob, or divide the work among several tasks"
                if size
                else "divide the work among several tasks"
            )
            faults.add(name, "at most", f"{said}: {hint}.")


def _events_of_a_piece(params: TaskParams) -> int | None:
    """The smallest number of events that is handed out; None when whole files are."""
    sizes = (
        params.whole(name) for name in ("minGranularity", "nEventsPerRange", "nEventsPerJob", "tgtNumEventsPerJob")
    )
    return next((size for size in sizes if size), None)


def schedule(params: TaskParams, faults: Faults) -> None:
    """A periodic task has one way to say when, and nothing else that says how much there is to do."""
    given = params.spec("periodic")
    if given is None:
        return
    if bool(given.get("every_s")) == bool(given.get("cron")):
        faults.add("periodic", "one of", "A schedule needs either every_s or cron.")
    if given.get("cron") and not is_cron(given["cron"]):
        faults.add(
            "periodic.cron", "cron", f"{shown(given['cron'])} is not a cron line of five fields with a next time."
        )
    if given.get("until") and moment(given["until"]) is None:
        faults.add("periodic.until", "time", f"{shown(given['until'])} is not a time such as 2031-05-06T07:08:00.")
    jobs, most = given.get("jobs") or 1, given.get("most_open")
    if most is not None and most < jobs:
        faults.add(
            "periodic.most_open",
            "at least",
            f"This is less than the jobs of one time ({jobs}): no job would ever be made.",
        )
    if not params.flag("noInput"):
        faults.add("noInput", "schedule", "A periodic task reads no dataset: noInput must be true.")
    for name in ("nEvents", "nFiles", "pfnList", "totNumJobs"):
        if params.given(name):
            faults.add(name, "schedule", f"periodic.jobs gives the amount of work: leave out {name}.")


def merging(params: TaskParams, faults: Faults) -> None:
    if not params.flag("mergeOutput"):
        return
    if kind_of(params) is not None:
        return  # such a task cannot have it at all, as `event_service` says
    if params.spec("mergeSpec") is None:
        faults.add(
            "mergeSpec", "required", f"mergeOutput needs mergeSpec, the merge step: for example {MERGE_EXAMPLE}."
        )
    if not params.logs:
        faults.add("log", "required", "mergeOutput needs log, because merge jobs are grouped by the log files.")


def library(params: TaskParams, faults: Faults) -> None:
    if params.spec("buildSpec") is not None:
        return
    for item in params.items:
        if "${LIB}" in item.value:
            where = join_path(item.where, "value")
            faults.add(where, "build", "${LIB} is made by a build step, but there is no buildSpec.")


def attributes(params: TaskParams, faults: Faults) -> None:
    """A word that nothing reads would be accepted without effect."""
    for item in params.items:
        where, pieces = join_path(item.where, "attributes"), split_names(item.text("attributes") or "")
        for fault in filter(None, map(fault_of, pieces)):
            faults.add(where, "known", f"{fault}.")
        read_by_all = not {"nosplit", "repeat"}.isdisjoint(pieces) or ".DBRelease." in (item.text("dataset") or "")
        if IN_CVMFS in pieces and not read_by_all:
            said = "cvmfs is for a dataset of which jobs read the same files: add nosplit and repeat, or leave the word out."
            faults.add(where, "contradiction", said)


def step_labels(params: TaskParams, faults: Faults) -> None:
    """Jobs of a step go to the pilots that fetch the others of the task, or to those that fetch builds."""
    known = (LABEL, params.prod_source_label)
    for step in ("buildSpec", "preproSpec"):
        label = (params.spec(step) or {}).get("prodSourceLabel")
        if label and label not in known:
            said = f"{shown(label)} is neither {LABEL} nor the label of the task, {params.prod_source_label}."
            faults.add(join_path(step, "prodSourceLabel"), "known", said)


def preprocessing(params: TaskParams, faults: Faults) -> None:
    if params.spec("preproSpec") is not None:
        return
    for item in params.items:
        marks = [name for name in (*item.datasets, item.raw.get("files")) if isinstance(name, str)]
        found = next((mark for mark in marks if PREPROCESSED.fullmatch(mark)), None)
        if found is not None:
            sentence = f"{found} is found by a preprocessing step, but there is no preproSpec."
            faults.add(join_path(item.where, "dataset"), "preprocessing", sentence)


def placeholders(params: TaskParams, faults: Faults) -> None:
    """What begins with a name that the site fills is one of its placeholders; everything else is the shell's."""
    streams, values = streams_of(params), values_of(params)
    for item in (*params.items, *params.logs, *params.merge_logs):
        where, text = join_path(item.where, "value"), item.value
        if item.is_template and item.param_type in ("output", "log"):
            before, name, after = item.value.rpartition(item.file_name)
            _check_file_name(name, where, faults)
            text = before + after
        # What stands in no command line needs nothing that fills it.
        unused = item.flag("hidden") or item.flag("mergeOnly") or item.where.startswith("log")
        _check_text(text, streams, values, where, faults, filled=not unused)
    merging = streams | {f"TRN_{stream}" for stream in streams} | {"LOG_MERGE"}
    steps = {
        "buildSpec": (BUILD_STREAMS, BUILD_VALUES & values),
        "preproSpec": (PREPRO_STREAMS, values),
        "esmergeSpec": (streams, values),
    }
    used = {"buildSpec", "preproSpec", "esmergeSpec"} | ({"mergeSpec"} if params.flag("mergeOutput") else set())
    for step in STEPS:
        text, (own, known) = (params.spec(step) or {}).get("jobParameters") or "", steps.get(step, (merging, values))
        _check_text(text, own, known, join_path(step, "jobParameters"), faults, filled=step in used)


def streams_of(params: TaskParams) -> frozenset[str]:
    """Names of the streams of files that the jobs of a task have; outputs are numbered as the refiner does."""
    found = {i.stream for i in params.items if i.is_template and i.param_type in ("input", "pseudo_input") and i.stream}
    if params.flag("noInput") and params.names("pfnList"):
        found.add("IN")
    made = [(item, item.param_type == "log") for item in params.items if item.param_type in ("output", "log")]
    made += [(item, True) for item in params.logs]
    for is_log, kind in ((False, "OUTPUT"), (True, "LOG")):
        count = sum(log is is_log and not item.flag("mergeOnly") for item, log in made)
        found |= {f"{kind}{number}" for number in range(count)}
    if params.merge_logs or any(item.flag("mergeOnly") for item, _ in made):
        found.add("LOG_MERGE")
    return frozenset(found)


def values_of(params: TaskParams) -> frozenset[str]:
    found = VALUE_NAMES - NEVER_FILLED if params.text("sourceURL") else VALUE_NAMES - NEVER_FILLED - {"SURL"}
    return found if params.text("loadXML") else found - OF_GROUPS


def _check_file_name(name: str, where: str, faults: Faults) -> None:
    if name.startswith("regex|"):
        return
    try:
        NameTemplate(name, task_id=0)
    except BadNameTemplate as error:
        faults.add(where, "placeholder", str(error))
    if what := reserved_for(name):
        faults.add(
            where,
            "reserved",
            f"{shown(name)} is reserved for {what} in a job's folder; choose another name for the output.",
        )


def _check_text(
    text: str, streams: Set[str], values: Set[str], where: str, faults: Faults, *, filled: bool = True
) -> None:
    """A fault for text that is no template, and with `filled` for a name of ours that would stay a hole in each job."""
    for said in bad_placeholders(text, streams):
        faults.add(where, "placeholder", said)
    missing = [name for name in names_in(text) if is_ours(name) and name not in streams | values] if filled else []
    for name in missing:
        faults.add(where, "placeholder", _nothing_fills(name, streams))


def _nothing_fills(name: str, streams: Set[str]) -> str:
    said = f"Nothing fills ${{{name}}} here"
    if name == "SURL":
        return f"{said}: it is replaced by sourceURL, which the task does not have."
    if name in VALUE_NAMES:
        return f"{said}: these jobs get no such value; give a shell variable another name."
    given = f"the streams are {', '.join(sorted(streams))}" if streams else "there are no streams"
    return f"{said}: no item makes that stream; {given}. Give a shell variable another name."


def outputs(params: TaskParams, faults: Faults) -> None:
    """Files of different jobs must have different names, and so must the outputs of one job."""
    seen: dict[str, str] = {}
    many = can_make_many_jobs(params)
    own_names = params.given("loadXML") or params.flag("onSiteMerging")
    for item in (*output_items(params), *params.merge_logs):
        where, name = join_path(item.where, "value"), item.file_name
        if name.startswith("regex|"):
            continue
        if many and not own_names and SERIAL.search(name) is None:
            faults.add(where, "serial number", f"Several jobs would make the file {shown(name)}; put ${{SN}} into it.")
        if name in seen:
            faults.add(where, "unique", f"{shown(name)} is already the file name of {seen[name]}.")
        seen.setdefault(name, item.where)


def in_or_out(params: TaskParams, faults: Faults) -> None:
    inputs = {d for i in params.items if i.is_template and i.param_type == "input" for d in i.datasets}
    for item in output_items(params):
        for dataset in item.datasets:
            if dataset in inputs:
                where = join_path(item.where, "dataset")
                faults.add(where, "input or output", f"{shown(dataset)} is an input of the task as well.")


def sites(params: TaskParams, faults: Faults) -> None:
    excluded = set(params.names("excludedSite"))
    both = excluded.intersection(params.names("includedSite"))
    if both:
        faults.add("excludedSite", "contradiction", f"Both included and excluded: {', '.join(sorted(both)[:5])}.")
    if params.text("site") in excluded:
        faults.add("excludedSite", "contradiction", f"{params.text('site')} is the site of the task and excluded.")


def memory(params: TaskParams, faults: Faults) -> None:
    units = {unit for unit in (params.text("ramUnit"), params.text("ramCountUnit")) if unit}
    if len(units) > 1:
        faults.add("ramCountUnit", "contradiction", f"ramUnit and ramCountUnit differ: {', '.join(sorted(units))}.")
    offset, most = params.whole("retryRamOffset"), params.whole("retryRamMax")
    if offset is not None and most is not None and most < offset:
        faults.add("retryRamMax", "at least", f"It must not be below retryRamOffset ({offset}), and it is {most}.")


def segments(params: TaskParams, faults: Faults) -> None:
    if params.flag("segmentedWork") and not params.given("segmentSpecs"):
        faults.add("segmentSpecs", "required", "segmentedWork needs segmentSpecs.")


def architecture(params: TaskParams, faults: Faults) -> None:
    """An architecture that no site could ever satisfy is refused here, rather than by each site for ever."""
    value: Any = params.raw.get("architecture")
    if value is None:
        return
    if not isinstance(value, str | Mapping):
        faults.add("architecture", "type", f"Expected a text or an object, got {shown(value)}.")
    elif isinstance(value, str) and len(value) > 256:
        faults.add("architecture", "length", f"At most 256 characters are allowed, not {len(value)}.")
    else:
        for fault in faults_of(value if isinstance(value, str) else json.dumps(dict(value), default=str)):
            faults.add("architecture", "form", sentence(fault))


_RULES: tuple[tuple[Rule, tuple[str, ...]], ...] = (
    (
        some_work,
        ("noInput", "nEvents", "nFiles", "totNumJobs", "pfnList", "hpoRequestData", "periodic", "jobParameters"),
    ),
    (schedule, ("periodic", "noInput", "nEvents", "nFiles", "pfnList", "totNumJobs")),
    (merging, ("mergeOutput", "mergeSpec", "log")),
    (library, ("buildSpec", "jobParameters")),
    (preprocessing, ("preproSpec", "jobParameters")),
    (attributes, ("jobParameters",)),
    (step_labels, ("buildSpec", "preproSpec", "prodSourceLabel")),
    (placeholders, ("jobParameters", "log", "log_merge", *STEPS)),
    (
        outputs,
        (
            "noInput",
            "nEvents",
            "nFiles",
            "nEventsPerJob",
            "nFilesPerJob",
            "jobParameters",
            "log",
            "log_merge",
            "loadXML",
            "onSiteMerging",
        ),
    ),
    (in_or_out, ("jobParameters", "log")),
    (sites, ("site", "includedSite", "excludedSite")),
    (memory, ("ramUnit", "ramCountUnit", "retryRamOffset", "retryRamMax")),
    (segments, ("segmentedWork", "segmentSpecs")),
    (groups, ("loadXML", "groupBoundaryID", "jobParameters", "noInput", "mergeOutput")),
    (
        by_group,
        ("releasePerGroup", "loadXML", "groupBoundaryID", "jobParameters", "noInput", "workflowHoldup", "waitInput"),
    ),
    (blocks, ("releasePerLB", "nChunksToWait", "noInputPooling", "noInput")),
    (event_service, (SWITCH, CLONES, FINE, "esFraction", "jobParameters", "nEvents", *ONLY_WITH, *AGAINST)),
    (architecture, ()),
    *combinations.RULES,
)


def check_across(params: TaskParams, faults: Faults) -> None:
    """Run every rule whose keys have no fault of their own."""
    for rule, keys in _RULES:
        if not faults.touches(*keys):
            rule(params, faults)


def output_items(params: TaskParams) -> tuple[Item, ...]:
    """Templates of outputs and logs of normal jobs, in order."""
    own = tuple(i for i in params.items if i.is_template and i.param_type in ("output", "log"))
    return own + params.logs


def can_make_many_jobs(params: TaskParams) -> bool:
    """Whether the task may have more than one job, as far as the dictionary tells."""
    if params.spec("periodic") is not None:
        return True
    files, per_job = params.whole("nFiles"), params.whole("nFilesPerJob")
    if params.flag("noInput"):
        events, events_per_job = params.whole("nEvents"), params.whole("nEventsPerJob")
        by_events = events is not None and events_per_job is not None and events > events_per_job
        by_files = files is not None and files > (per_job or 1)
        return by_events or by_files
    size = _events_of_a_piece(params)
    if size and (params.flag("useRealNumEvents") or (params.events_per_input or 0) > size):
        return True
    return not (files == 1 or (files is not None and per_job is not None and files <= per_job))
