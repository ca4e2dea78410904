"""From items to datasets, output templates and the text of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from jedisite.vocabulary.words import plural, thousands
from tasks_app.domain.scopes import CONTAINER_MARK, UNMERGED
from tasks_app.params.dataset_attributes import attributes_of
from tasks_app.params.items import LONGEST_DATASET, Item
from tasks_app.params.job_groups import bare, read_groups
from tasks_app.params.naming import BadNameTemplate, NameTemplate
from tasks_app.params.placeholders import VALUE_NAMES, BadTemplate, compile_template, is_ours, names_in
from tasks_app.params.schema import TaskParams
from tasks_app.refining.values import CannotRefine, DatasetSpec, NothingThere, OutputTemplate, Request

PSEUDO_DATASET = "pseudo_dataset"
RANDOM_SEED = "RNDMSEED"
MASTER_STREAM = "IN"
MAPPED = (2, 4)
"""Values of groupBoundaryID with which outputs go to a dataset of their own for each input dataset."""
MOST_MAPPED = 10_000
"""Datasets that such a task makes at most: the refiner stores them in one turn."""


@dataclass(slots=True)
class Layout:
    """Grows while items are read in order. `places` are those of the datasets by name and type."""

    datasets: list[DatasetSpec] = field(default_factory=list)
    templates: list[OutputTemplate] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    streams: set[str] = field(default_factory=set)
    first_master: int | None = None
    seed_offset: int | None = None
    event_offset: int | None = None
    places: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, dataset: DatasetSpec) -> int:
        """Append a dataset and return its place. Raises CannotRefine for a name that is too long."""
        if len(dataset.datasetname) > LONGEST_DATASET:
            raise CannotRefine(f"The dataset {dataset.datasetname[:40]}… has more than {LONGEST_DATASET} characters.")
        self.datasets.append(dataset)
        place = len(self.datasets) - 1
        self.places.setdefault((dataset.datasetname, dataset.type), place)
        return place

    def known(self, name: str, types: tuple[str, ...]) -> int | None:
        """The first place of a dataset of this name and one of the types."""
        return min((self.places[name, one] for one in types if (name, one) in self.places), default=None)


def containers_of(params: TaskParams) -> tuple[str, ...]:
    """Input containers whose datasets have to be looked up before refining."""
    if params.text("loadXML"):
        return ()  # the files of a group stand in one dataset
    names = (name for item in _inputs(params.items) for name in datasets_of(item, params) if _is_container(item, name))
    return tuple(dict.fromkeys(names))


def item_of_stream(params: TaskParams, stream: str) -> Item | None:
    """The input item that declared a stream: it says which files of its datasets are wanted."""
    return next((item for item in _inputs(params.items) if item.stream == stream), None)


def datasets_of(item: Item, params: TaskParams) -> tuple[str, ...]:
    """Datasets of an input item with those that `dsFor<STREAM>` adds, each once."""
    return tuple(dict.fromkeys((*item.datasets, *params.datasets_for.get(item.stream or "", ()))))


def _inputs(items: Iterable[Item]) -> Iterable[Item]:
    return (item for item in items if item.is_template and item.param_type in ("input", "pseudo_input"))


def _is_container(item: Item, name: str) -> bool:
    """Whether the datasets of a container become inputs of their own; else the container is read as one dataset."""
    if item.param_type != "input":
        return False
    return item.flag("expand", default=name.endswith(CONTAINER_MARK) and not item.text("consolidate"))


def lay_out(request: Request, *, event_service: bool) -> Layout:
    """Read all items of the task. Raises CannotRefine."""
    params, layout = request.params, Layout()
    if params.flag("noInput"):
        stream = MASTER_STREAM if params.names("pfnList") else None
        layout.first_master = layout.add(DatasetSpec(PSEUDO_DATASET, "pseudo_input", stream))
        if stream:
            layout.streams.add(stream)
    for item in params.items:
        if item.flag("es_only") and not event_service:
            continue
        _add_item(layout, item, request)
    for item in params.logs:
        add_output(layout, item, request, is_log=True)
    for item in params.merge_logs:
        add_output(layout, item, request, is_log=True, stream="LOG_MERGE")
    if params.whole("groupBoundaryID") in MAPPED:
        _map_outputs(layout, params)
    if RANDOM_SEED in names_in("".join(layout.text)):
        layout.add(DatasetSpec(RANDOM_SEED, "random_seed", RANDOM_SEED))
    if params.flag("mergeOutput"):
        _add_unmerged(layout, request)
    return layout


def _add_item(layout: Layout, item: Item, request: Request) -> None:
    value = item.value
    if item.is_template and item.param_type in ("input", "pseudo_input"):
        _add_input(layout, item, request)
    elif item.is_template and item.param_type in ("output", "log"):
        is_log = item.param_type == "log"
        stream = "LOG_MERGE" if item.flag("mergeOnly") else None
        stream = add_output(layout, item, request, is_log=is_log, stream=stream)
        before, name, after = item.value.rpartition(item.file_name)
        value = f"{before}${{{stream}}}{after}" if name else item.value
    elif item.param_type == "number":
        _note_offset(layout, item)
    # What merge jobs alone write is no part of the command line of the others.
    if not item.flag("hidden") and not item.flag("mergeOnly"):
        layout.text.append(value + (" " if item.flag("padding", default=True) else ""))


def _add_input(layout: Layout, item: Item, request: Request) -> None:
    """The first input item gives the masters, all later ones give secondaries.

    Secondaries belong to the first master and serve the jobs of all masters, so that each of their files, and each
    number of a sequence, is used once in the whole task.
    """
    stream, before = item.stream, len(layout.datasets)
    is_master = layout.first_master is None
    found = [(name, given) for given in datasets_of(item, request.params) for name in _datasets_in(given, request)]
    if not found:
        raise NothingThere(f"The input {', '.join(item.datasets)} contains no datasets.", item.datasets)
    for name, given in found:
        if layout.known(name, ("input", "pseudo_input")) is not None:
            continue
        place = layout.add(
            DatasetSpec(
                datasetname=name,
                type=item.param_type or "input",
                streamname=stream,
                master=None if is_master else layout.first_master,
                attributes=_attributes(item, name, request.params, is_master=is_master),
                # Nothing is gathered into the container that `consolidate` names: PanDA's client makes that name up.
                containername=given if _is_container(item, given) and not request.params.text("loadXML") else None,
                storagetoken=item.text("token"),
            )
        )
        if layout.first_master is None:
            layout.first_master = place
    if len(layout.datasets) == before and stream not in layout.streams:
        raise CannotRefine(f"{', '.join(item.datasets)} is already read as another stream than {stream}.")
    if stream:
        layout.streams.add(stream)


def _attributes(item: Item, name: str, params: TaskParams, *, is_master: bool) -> str:
    """The attributes of an input; every job reads all files of those that `loadXML` calls manytime."""
    text, xml = attributes_of(item, master=is_master), params.text("loadXML")
    if not xml or is_master or bare(name) not in read_groups(xml).many_times:
        return text
    return ",".join(dict.fromkeys([*filter(None, text.split(",")), "nosplit", "repeat"]))


def _datasets_in(name: str, request: Request) -> Sequence[str]:
    return request.constituents.get(name, (name,))


def _note_offset(layout: Layout, item: Item) -> None:
    offset = item.whole("offset") or 0
    names = names_in(item.value)
    if RANDOM_SEED in names:
        layout.seed_offset = offset
    if "FIRSTEVENT" in names:
        layout.event_offset = offset


def add_output(
    layout: Layout, item: Item, request: Request, *, is_log: bool, stream: str | None = None, type_as: str | None = None
) -> str:
    """Add an output and return its stream: OUTPUT0, OUTPUT1, … or LOG0, LOG1, … in order.

    `type_as` is the dataset's type when it is not that of the output. Raises CannotRefine for a bad name.
    """
    kind = "log" if is_log else "output"
    if stream is None:
        count = sum(t.outtype == kind and t.streamname != "LOG_MERGE" for t in layout.templates)
        stream = f"{kind.upper()}{count}"
    name, type_ = item.datasets[0], type_as or kind
    container = item.text("container") or (name if name.endswith(CONTAINER_MARK) else None)
    name = _concrete(name, container, request.task_id)
    place = layout.known(name, (type_,))
    if place is None:
        place = layout.add(
            DatasetSpec(
                datasetname=name,
                type=type_,
                streamname=stream,
                provenance=layout.first_master,
                attributes=attributes_of(item),
                containername=container,
                storagetoken=item.text("token"),
                destination=item.text("destination") or request.params.text("destination"),
            )
        )
    try:
        NameTemplate(item.file_name, task_id=request.task_id)
    except BadNameTemplate as error:
        raise CannotRefine(f"{item.where}: {error}") from error
    layout.templates.append(OutputTemplate(place, item.file_name, (item.whole("offset") or 0) + 1, stream, kind))
    layout.streams.add(stream)
    return stream


def _concrete(name: str, container: str | None, task_id: int) -> str:
    """The dataset of an output: one of the task's own where the name is that of the container that it goes into."""
    bare = name.rstrip(CONTAINER_MARK)
    return f"{bare}.{task_id}" if container and container.rstrip(CONTAINER_MARK) == bare else bare


def _map_outputs(layout: Layout, params: TaskParams) -> None:
    """Each master has output datasets of its own: the first those that the items name, the others copies of them.

    Raises CannotRefine where merge jobs would have to tell them apart.
    """
    masters = [n for n, d in enumerate(layout.datasets) if d.type == "input" and d.master is None]
    if len(masters) > 1 and params.flag("mergeOutput"):
        raise CannotRefine(
            "Outputs that are mapped to several inputs (groupBoundaryID 2 or 4) cannot be merged: set 1 or 3."
        )
    outputs = [t for t in layout.templates if t.outtype == "output"]
    if len(masters) * len(outputs) > MOST_MAPPED:
        inputs, made = plural(len(masters), "input dataset"), plural(len(outputs), "output")
        raise CannotRefine(
            f"With groupBoundaryID 2 or 4 each of {inputs} has output datasets of its own, and {made} make more than "
            f"{thousands(MOST_MAPPED)} of them: divide the work among several tasks."
        )
    for template in outputs:
        spec = replace(layout.datasets[template.dataset], provenance=masters[0] if masters else None)
        layout.datasets[template.dataset] = spec
        for number, master in enumerate(masters[1:], 2):
            place = layout.add(
                replace(spec, datasetname=f"{spec.datasetname.rstrip('/')}.in{number}", provenance=master)
            )
            name = template.filenametemplate.replace("${SN", f"in{number}.${{SN", 1)
            layout.templates.append(replace(template, dataset=place, filenametemplate=name))


def _add_unmerged(layout: Layout, request: Request) -> None:
    """Jobs write to datasets of their own first; merge jobs read those and write the outputs that users see.

    The stream of such a dataset is that of the merge job's input, `TRN_OUTPUT0`; the stream of its template that of the
    output which the first job writes, `OUTPUT0`. Each output has its own, also when several go to one dataset: files of
    different outputs are never merged into one.
    """
    _add_merge_log(layout, request)
    at_end = request.params.flag("umNameAtEnd")

    def unmerged(name: str) -> str:
        bare = name.rstrip("/")
        return f"{bare}.{UNMERGED}" if at_end else f"{UNMERGED}.{bare}"

    for template in list(layout.templates):
        if template.streamname == "LOG_MERGE":
            continue
        final = layout.datasets[template.dataset]
        spec = replace(
            final,
            datasetname=unmerged(final.datasetname),
            type=f"trn_{template.outtype}",
            streamname=f"TRN_{template.streamname}",
            provenance=template.dataset,
            containername=None,
            destination=None,
        )
        layout.templates.append(
            replace(template, dataset=layout.add(spec), filenametemplate=unmerged(template.filenametemplate))
        )


_WRITES_LOG = re.compile(r"\$\{(?:TRN_LOG:)?LOG\d*[}/\[]")


def _add_merge_log(layout: Layout, request: Request) -> None:
    """A merge job that writes the logs of the others into one log needs another name for its own."""
    spec = request.params.spec("mergeSpec") or {}
    if "LOG_MERGE" in layout.streams or not _WRITES_LOG.search(str(spec.get("jobParameters") or "")):
        return
    log = next(t for t in layout.templates if t.outtype == "log")
    name, ending = log.filenametemplate, ".log.tgz"
    name = f"{name.removesuffix(ending)}.merge{ending}" if name.endswith(ending) else f"{name}.merge"
    layout.templates.append(replace(log, filenametemplate=name, streamname="LOG_MERGE"))
    layout.streams.add("LOG_MERGE")


def text_of(layout: Layout, request: Request) -> str:
    """The text of the command line, with what is known of the task filled in. Raises CannotRefine.

    Outputs that a constant names in full become placeholders too: the name of the file is then right whatever serial
    number or prefix the job gets.
    """
    text = "".join(layout.text).removesuffix(" ")
    for template in layout.templates:
        if "${SN" in template.filenametemplate:
            text = _whole_name(template.filenametemplate).sub(f"${{{template.streamname}}}", text)
    source_url = request.params.text("sourceURL")
    if source_url:
        text = text.replace("${SURL}", source_url)
    text = re.sub(r"\$JEDITASKID\b", str(request.task_id), text)
    _check_text(text, layout)
    return text


def _whole_name(template: str) -> re.Pattern[str]:
    """Finds a file-name template where it is a whole name. In file names `${SN}` and `${SN/P}` mean the same."""
    name = re.escape(template.replace("${SN/P}", "${SN}")).replace(re.escape("${SN}"), r"\$\{SN(?:/P)?\}")
    return re.compile(rf"(?<![\w.-]){name}(?![\w.-])")


def _check_text(text: str, layout: Layout) -> None:
    for name in names_in(text):
        if is_ours(name) and name not in VALUE_NAMES and name not in layout.streams:
            given = ", ".join(sorted(layout.streams)) or "none"
            raise CannotRefine(f"${{{name}}} is used, but no item makes that stream; the streams are: {given}.")
    try:
        compile_template(text, streams=layout.streams)
    except BadTemplate as error:
        raise CannotRefine(str(error)) from error


def check_merging(layout: Layout, params: TaskParams) -> None:
    """Raises CannotRefine when the command line of merge jobs can never be filled."""
    spec = params.spec("mergeSpec")
    if spec is None or not params.flag("mergeOutput"):
        return
    text = str(spec["jobParameters"])
    streams = layout.streams | {d.streamname for d in layout.datasets if d.streamname and "trn_" in d.type}
    for name in names_in(text):
        if is_ours(name) and name not in VALUE_NAMES and name not in streams:
            given = ", ".join(sorted(streams))
            raise CannotRefine(
                f"mergeSpec uses ${{{name}}}, but no output makes that stream; the streams are: {given}."
            )
    try:
        compile_template(text, streams=streams)
    except BadTemplate as error:
        raise CannotRefine(f"mergeSpec: {error}") from error
