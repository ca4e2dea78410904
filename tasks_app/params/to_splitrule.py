"""From task parameters to the split rule."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from tasks_app.params.keys import KEYS
from tasks_app.params.schema import TaskParams
from tasks_app.params.split_codes import number_of
from tasks_app.params.splitrule import SplitRule

Values = dict[str, str]


def from_params(params: TaskParams) -> SplitRule:
    """The split rule of a new task, as far as the dictionary decides it.

    Refiners add what depends on them (templates of output datasets, limited sites, build and preprocessing).
    """
    values: Values = {}
    for key in KEYS.values():
        if key.code is None:
            continue
        if key.rule == "value":
            number = params.whole(key.name)
            if number is not None:
                values[key.code] = str(number)
        elif key.rule == "flag" and params.flag(key.name):
            values[key.code] = "1"
    for step in _STEPS:
        step(params, values)
    return SplitRule(MappingProxyType(values))


def _events_and_files(params: TaskParams, values: Values) -> None:
    files, events = params.whole("nFilesPerJob"), params.whole("nEventsPerJob")
    in_file = params.events_per_input
    if in_file is not None:
        values["EI"] = str(in_file)
    if events is None and files is None:
        # The feeder cuts even slices near this number, and one slice makes one job.
        events = params.whole("tgtNumEventsPerJob")
    if events is not None:
        values["NE"] = str(events)
    if files is None and in_file is not None and params.whole("nEventsPerJob", 0) and (events or 0) >= in_file:
        files = (events or 0) // in_file
    if files is None and params.spec("periodic") is not None:
        files = 1
    if files is not None:
        values["NF"] = str(files)
    smallest = params.whole("minGranularity", params.whole("nEventsPerRange"))
    if smallest is not None:
        values["DY"] = str(smallest)


def _scouts(params: TaskParams, values: Values) -> None:
    grouped = params.text("loadXML") or params.given("groupBoundaryID")
    if not params.flag("skipScout") and not grouped and params.spec("periodic") is None:
        values["US"] = str(number_of("US", "yes"))


def _staging(params: TaskParams, values: Values) -> None:
    """Whatever asks for staging, inputs that lie on tape are brought to disk, and jobs get them by bunches as they arrive."""
    if params.flag("inputPreStaging") or params.flag("toStaging") or params.flag("panda_data_carousel"):
        values["IS"] = "1"


def _local_io(params: TaskParams, values: Values) -> None:
    name = "forceStaged" if params.given("forceStaged") else "useLocalIO"
    if params.given(name):
        values["LI"] = "1" if params.flag(name) else "0"


def _boundaries(params: TaskParams, values: Values) -> None:
    mode = params.whole("groupBoundaryID")
    if params.text("loadXML"):
        values["LX"] = "3"
        mode = mode or number_of("GB", "whole, mapped output")
    if mode:
        values["GB"] = str(mode)


def _choices(params: TaskParams, values: Values) -> None:
    for name, code in (("altStageOut", "AT"), ("allowInputLAN", "IL"), ("fullChain", "FU"), ("orderInputBy", "OI")):
        choice = params.text(name)
        if choice:
            values[code] = str(number_of(code, choice))
    network = params.text("ipConnectivity")
    if network:
        reach, _, stack = network.partition("#")
        values["IP"] = str(number_of("IP", reach))
        if stack:
            values["IK"] = str(number_of("IK", stack))
    back_end = params.text("ddmBackEnd")
    if back_end:
        values["DE"] = back_end


def _cloning(params: TaskParams, values: Values) -> None:
    """Copies of a job are event service with one range a worker, on two sites."""
    choice = params.text("useJobCloning")
    if choice:
        values["UC"] = str(number_of("UC", choice))
        values.setdefault("ES", "1")
        values.setdefault("NS", "2")
        values.setdefault("EC", values["NS"])


def _others(params: TaskParams, values: Values) -> None:
    fields = params.names("addNthFieldToLFN")
    if fields:
        values["AN"] = ",".join(fields)
    if params.names("pfnList"):
        values["PL"] = "1"
    if params.spec("multiStepExec"):
        values["MS"] = "1"
    if params.flag("segmentedWork") and params.given("segmentSpecs"):
        values["SW"] = "1"
    if params.flag("hpoWorkflow") and params.given("hpoRequestData"):
        values["HO"] = "1"
    if params.flag("getNumEventsInMetadata") and "EI" not in values:
        values["UE"] = "1"
    jumbo = params.whole("maxJumboPerSite")
    if "NJ" in values and jumbo is not None:
        values["MJ"] = str(jumbo)


_STEPS: tuple[Callable[[TaskParams, Values], None], ...] = (
    _events_and_files,
    _scouts,
    _staging,
    _local_io,
    _boundaries,
    _choices,
    _cloning,
    _others,
)
