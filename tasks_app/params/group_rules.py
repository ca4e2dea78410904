"""What a task whose files are divided into groups may ask for: `loadXML`, `groupBoundaryID` and `boundaryID` of listed files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.items import LONGEST_FILE_NAME, PLACEHOLDER, Item
from tasks_app.params.job_groups import MOST_FILES, BadGroups, JobGroups, bare, read_groups
from tasks_app.params.placeholders import names_in

if TYPE_CHECKING:
    from tasks_app.params.schema import TaskParams

WHOLE: Final = (3, 4)
"""Values of groupBoundaryID with which a group is one job, whatever its size."""
_SERIAL_DIGITS: Final = "0" * 10
_CUTS: Final = (
    "nFilesPerJob",
    "nEventsPerJob",
    "tgtNumEventsPerJob",
    "nEventsPerInputFile",
    "nEventsPerFile",
    "minGranularity",
    "nEventsPerRange",
)
"""They cut files into jobs, or into ranges of events, by another measure than groups."""
_CHOOSES: Final = (
    "nFiles",
    "nEvents",
    "orderInputBy",
    "respectLB",
    "orderByLB",
    "skipFilesUsedBy",
    "pfnList",
    "periodic",
)
"""They leave files out, or put them into an order of their own."""


def groups(params: TaskParams, faults: Faults) -> None:
    """Every group can become jobs that read all of its files; what would cut groups or leave files of them out is refused."""
    xml, mode = params.text("loadXML"), params.whole("groupBoundaryID")
    listed = [(item, numbers) for item in _inputs(params) if (numbers := item.file_groups)]
    if not xml and mode is None:
        for item, _ in listed:
            said = "boundaryID has no effect without groupBoundaryID, which says what a group means for jobs."
            faults.add(join_path(item.where, "files"), "groups", said)
        return
    whole = (mode or WHOLE[-1]) in WHOLE
    name = "loadXML" if xml else "groupBoundaryID"
    for key in (*_CUTS, *(("nGBPerJob",) if whole else ()), *_CHOOSES):
        if params.given(key) and params.raw[key] not in (0, False, "", []):
            why = "all files of a group are read"
            if key in (*_CUTS, "nGBPerJob"):
                why = "each group is one job, whatever its size" if whole else "jobs are made of the files of one group"
            more = ", and let nMaxFilesPerJob cut large groups" if key == "nFilesPerJob" and not whole else ""
            faults.add(key, "groups", f"With {name} {why}: leave out {key}{more}.")
    for item in _inputs(params):
        for flag in ("random", "indexConsistent"):
            if item.flag(flag):
                faults.add(
                    join_path(item.where, flag), "groups", f"With {name} all files of a group are read, in its order."
                )
        if item.whole("offset") and item.param_type == "input":
            faults.add(
                join_path(item.where, "offset"),
                "groups",
                f"With {name} all files of a group are read: leave out offset.",
            )
    if xml:
        _check_xml(params, xml, whole, faults)
        return
    if params.flag("noInput"):
        faults.add(
            "groupBoundaryID", "groups", "There are no files to be grouped: give loadXML, whose groups need none."
        )
    for item, numbers in listed:
        _check_listed(item, numbers, whole, faults)


def blocks(params: TaskParams, faults: Faults) -> None:
    """Inputs that are released by whole luminosity blocks (releasePerLB) come in no other bunches."""
    if not params.flag("releasePerLB"):
        return
    for key in ("nChunksToWait", "noInputPooling"):
        if params.given(key) and params.raw[key]:
            said = f"With releasePerLB inputs are released by whole luminosity blocks: leave out {key}."
            faults.add(key, "groups", said)
    if params.flag("noInput"):
        faults.add("releasePerLB", "groups", "The task reads no files, so it has no luminosity blocks.")


def by_group(params: TaskParams, faults: Faults) -> None:
    """Inputs that are released group by group (releasePerGroup) name their groups, and all files of a group stand in one."""
    if not params.flag("releasePerGroup"):
        return
    xml, read = params.text("loadXML"), [item for item in _inputs(params) if item.param_type == "input"]
    if params.flag("noInput") or not read:
        faults.add("releasePerGroup", "groups", "The task reads no files, so it has no groups of files to wait for.")
    elif not xml and not (params.given("groupBoundaryID") and any(item.file_groups for item in read)):
        said = "It needs groups whose files are named: loadXML, or groupBoundaryID and boundaryID of listed files."
        faults.add("releasePerGroup", "groups", said)
    elif sum(len(_datasets(params, item)) for item in read) > 1:
        said = "With it the files of all groups stand in one dataset or container: name only that."
        faults.add("releasePerGroup", "groups", said)
    for key in ("workflowHoldup", "waitInput", "allowEmptyInput"):
        if params.given(key) and params.raw[key]:
            faults.add(
                key, "groups", f"With releasePerGroup the task waits for all files that it names: leave out {key}."
            )


def remarks(params: TaskParams) -> Iterator[str]:
    """Sentences on elements of loadXML that say something else than the task's items, whose word holds, or nothing at all."""
    if not (xml := params.text("loadXML")):
        return
    found = read_groups(xml)
    written = [bare(name) for item in params.items if item.param_type == "output" for name in item.datasets]
    # A client may have put its own ending behind the name.
    if found.outds and not any(name.startswith(found.outds) for name in written):
        where = f"outputs go to {', '.join(written[:3])}" if written else "the task has no output"
        yield f"<outds> {found.outds[:120]} of loadXML has no effect: {where}, as jobParameters says."
    for item in _inputs(params):
        for name in map(bare, _datasets(params, item)):
            stream = found.streams.get(name)
            if stream and stream != item.stream:
                said = f"the items of jobParameters call it {item.stream}"
                yield f"<stream> {stream[:60]} of {name} in loadXML has no effect: {said}."
    if len(found.for_people) > 1:
        yield f"{' and '.join(f'<{tag}>' for tag in found.for_people)} of loadXML say nothing: they are for people to read."
    elif found.for_people:
        yield f"<{found.for_people[0]}> of loadXML says nothing: it is for people to read."


def _inputs(params: TaskParams) -> list[Item]:
    return [item for item in params.items if item.is_template and item.param_type in ("input", "pseudo_input")]


def _check_listed(item: Item, groups_of: Mapping[str, Sequence[int]], whole: bool, faults: Faults) -> None:
    """Groups by `boundaryID` of the files that an item lists: `groups_of` has those of each file."""
    where = join_path(item.where, "files")
    for lfn, field in item.named_files.items():
        if lfn not in groups_of:
            faults.add(field, "groups", f"{shown(lfn)} has no boundaryID, and other files of the list have.")
            break
    sizes = Counter(number for numbers in groups_of.values() for number in numbers)
    if whole and sizes:
        number, files = max(sizes.items(), key=lambda pair: pair[1])
        if files > MOST_FILES:
            said = f"The group {number} has {files} files, and a group is one job, which reads at most {MOST_FILES}."
            faults.add(where, "groups", said)


def _check_xml(params: TaskParams, xml: str, whole: bool, faults: Faults) -> None:
    try:
        found = read_groups(xml)
    except BadGroups as error:
        faults.add(join_path("loadXML", error.where) if error.where else "loadXML", "groups", str(error))
        return
    if params.flag("mergeOutput"):
        faults.add(
            "mergeOutput", "groups", "Each group of loadXML names its own outputs, which are never merged into one."
        )
    read = [item for item in _inputs(params) if item.param_type == "input" and item.datasets != ("seq_number",)]
    _check_datasets(params, found, read, whole, faults)
    _check_commands(params, found, faults)
    _check_outputs(params, found, faults)


def _check_datasets(params: TaskParams, found: JobGroups, read: list[Item], whole: bool, faults: Faults) -> None:
    """Items and groups name the same datasets, and every group has files of each."""
    names = [(bare(name), item) for item in read for name in dict.fromkeys(map(bare, _datasets(params, item)))]
    known = {name for name, _ in names}
    for number, group in enumerate(found.groups):
        for name in group.files:
            if name not in known:
                said = f"No item of jobParameters reads the dataset {shown(name)}."
                faults.add(f"loadXML.job[{number}].inds", "groups", said)
                return
    master = None if params.flag("noInput") else next((name for name, _ in names), None)
    if found.primary and master not in (None, found.primary):
        said = f"The first input of jobParameters is {master}, and the primary dataset is {found.primary}."
        faults.add("loadXML.inds", "groups", said)
    if master is not None and sum(item is names[0][1] for _, item in names) > 1:
        said = "With loadXML the first input is one dataset: the files of one group stand in one."
        faults.add(join_path(names[0][1].where, "dataset"), "groups", said)
    for name, item in names:
        where = join_path(item.where, "dataset")
        if name in found.many_times and name != master:
            continue
        lacking = next((number for number, group in enumerate(found.groups) if not group.files.get(name)), None)
        if lacking is not None:
            hint = "" if name == master else "; a dataset that every job reads as a whole is declared manytime"
            faults.add(
                f"loadXML.job[{lacking}].inds", "groups", f"It names no file of {name}, which {item.where} reads{hint}."
            )
        elif not whole and name != master:
            hint = "declare it manytime, or set groupBoundaryID to 3 or 4"
            said = f"Jobs of one group cannot share out the files of {name}: {hint}."
            faults.add(where, "groups", said)


def _datasets(params: TaskParams, item: Item) -> tuple[str, ...]:
    return (*item.datasets, *params.datasets_for.get(item.stream or "", ()))


def _check_commands(params: TaskParams, found: JobGroups, faults: Faults) -> None:
    """A command line that asks for the command of its group gets one, and commands are asked for."""
    asked = any("XML_EXESTR" in names_in(item.value) for item in params.items)
    without = next((number for number, group in enumerate(found.groups) if not group.command), None)
    if asked and without is not None:
        said = "It has no command, there is none for all groups, and ${XML_EXESTR} asks for it."
        faults.add(f"loadXML.job[{without}].command", "groups", said)
    elif not asked and any(group.command or group.forward for group in found.groups):
        said = "The commands and options of loadXML have no effect: no item of jobParameters has ${XML_EXESTR}."
        faults.add("loadXML.command", "groups", said)


def _check_outputs(params: TaskParams, found: JobGroups, faults: Faults) -> None:
    """One item gives the names of outputs their beginning, and the names are not too long."""
    made = [item for item in params.items if item.is_template and item.param_type == "output"]
    longest = max((ending for group in found.groups for ending in group.endings), key=len, default="")
    if longest and not made:
        said = f"No item of jobParameters is an output: its file name begins that of {longest[1:]}."
        faults.add("loadXML.output", "groups", said)
    without = next((number for number, group in enumerate(found.groups) if not group.outputs), None)
    asking = next((item for item in made if not item.flag("hidden")), None)
    if without is not None and asking is not None:
        said = (
            f"It has no output, and {asking.where} puts one into the command line: set hidden there, or name an output."
        )
        faults.add(f"loadXML.job[{without}]", "groups", said)
    for item in made[1:]:
        said = "With loadXML there is one output item: what each job writes is named in the XML."
        faults.add(item.where, "groups", said)
    for item in made[:1]:
        length = len(PLACEHOLDER.sub(_SERIAL_DIGITS, item.file_name)) + len(longest)
        if length > LONGEST_FILE_NAME:
            said = f"With {longest[1:]} of loadXML the name has {length} characters, and at most {LONGEST_FILE_NAME} are allowed."
            faults.add(join_path(item.where, "value"), "groups", said)
