"""Packages become tasks: one for those of a stage with the same software, needs and wishes for their files. Pure.

Each package is a group of files of its task (`loadXML`), and so one job. All files of a workflow come together in one
container: those that its packages write, each in the dataset of its task, and those that were there before. A task reads that
container, and each of its groups is released when its files are there, whichever tasks make them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from tasks_app.workflows.rules.definition import Acquisition, Definition, Package
from tasks_app.workflows.rules.implied_graph import Graph, Node
from tasks_app.workflows.rules.stickiness import is_deleted, kept_by

LONGEST_GROUPS: Final = 900_000
"""Characters of the groups of one task; a task of more is cut into several."""
MOST_ELEMENTS: Final = 50_000
MOST_ATTEMPTS: Final = 999
"""Of a package, however many reasons it may be restarted for."""
_HEAD: Final = "<submission>"
_END: Final = "</submission>"


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """`number` counts from 1. `nodes`: the packages by index; the place of each is the number of its group."""

    number: int
    nodes: tuple[int, ...]
    groups: str


@dataclass(frozen=True, slots=True)
class Names:
    """What a workflow's things are called. `prefix` begins the names of all its tasks, datasets and files."""

    prefix: str

    @property
    def container(self) -> str:
        return f"{self.prefix}/"

    def dataset(self, task: int) -> str:
        return f"{self.prefix}.{task}"

    def file(self, task: int, base: str) -> str:
        return f"{self.dataset(task)}.{base}"


def planned_tasks(graph: Graph, names: Names, canceled: Collection[int] = ()) -> list[PlannedTask]:
    """The tasks of a workflow, in the order of their first packages. What is canceled, and its files, nobody waits for."""
    by_kind: dict[object, list[Node]] = {}
    kept = kept_by(node.package for node in graph.nodes)
    for node in graph.nodes:
        by_kind.setdefault((_kind(graph, node), is_deleted(node.package, kept)), []).append(node)
    shares = [share for nodes in by_kind.values() for share in _shares(graph, nodes, names)]
    shares.sort(key=lambda share: share[0].index)
    place = {node.index: number for number, share in enumerate(shares, 1) for node in share}
    return [
        PlannedTask(
            number,
            tuple(node.index for node in share),
            _HEAD + "".join(_group(graph, node, place, names, canceled) for node in share) + _END,
        )
        for number, share in enumerate(shares, 1)
    ]


def files_by_dataset(definition: Definition) -> dict[str, list[str]]:
    """The files that no package writes, by the dataset in which they are."""
    found: dict[str, dict[str, None]] = {}
    for *_, package in definition.packages():
        for file in package.inputs():
            if file.dataset:
                found.setdefault(file.dataset, {})[file.name] = None
    return {dataset: list(names) for dataset, names in found.items()}


def task_dictionary(planned: PlannedTask, definition: Definition, graph: Graph, names: Names) -> dict[str, Any]:
    """The parameters of a task."""
    first = graph.nodes[planned.nodes[0]]
    package, own = first.package, names.dataset(planned.number)
    found: dict[str, Any] = {
        "taskName": own,
        "prodSourceLabel": "user",
        "loadXML": planned.groups,
        "maxAttempt": min(sum(definition.restarts.values()) + 1, MOST_ATTEMPTS),
        "log": {"type": "template", "param_type": "log", "dataset": f"{own}.log", "value": f"{own}.${{SN}}.log.tgz"},
        "jobParameters": [{"type": "constant", "value": '-o "${XML_OUTMAP}" -p "${XML_EXESTR}"'}],
    }
    items: list[dict[str, Any]] = found["jobParameters"]
    if _reads(graph, first):
        item = {"type": "template", "param_type": "input", "dataset": names.container, "value": '-i "${IN/T}"'}
        items.append(item)
        found["releasePerGroup"] = True
    else:
        found["noInput"] = True
    if any(_writes(graph, graph.nodes[index]) for index in planned.nodes):
        items.append(
            {
                "type": "template",
                "param_type": "output",
                "dataset": own,
                "container": names.container,
                "value": own,
                "hidden": True,
            }
        )
    if any(file.acquisition is Acquisition.PREFETCH for file in package.inputs()):
        found["inputPreStaging"] = True
    if definition.priority:
        found["taskPriority"] = definition.priority
    if package.nodes:
        found["includedSite"] = ",".join(package.nodes)
    if package.not_nodes:
        found["excludedSite"] = ",".join(package.not_nodes)
    if not package.notify:
        found["noEmail"] = True
    if work_mb := max(binary.work_mb for binary in package.binaries):
        found |= {"workDiskCount": work_mb, "workDiskUnit": "MB"}
    if run_time_s := sum(binary.run_time_s for binary in package.binaries):
        found["walltime"] = run_time_s
    return found


def _kind(graph: Graph, node: Node) -> object:
    """What packages of one task have in common."""
    package = node.package
    software = tuple((one.software, one.version, one.work_mb, one.run_time_s) for one in package.binaries)
    fetched = any(file.acquisition is Acquisition.PREFETCH for file in package.inputs())
    kept = frozenset(file.keep for file in package.inputs()), frozenset(file.keep for file in package.outputs())
    needs = (package.nodes, package.not_nodes, package.notify, fetched, bool(_reads(graph, node)), kept)
    return node.stage, node.sequence, software, needs


def _token(graph: Graph, node: Node) -> str:
    """The file that says that a package has ended, for the next one of its line; "" when that reads another file of it."""
    after = node.index + 1
    if after == len(graph.nodes) or graph.nodes[after].line_path != node.line_path:
        return ""
    if set(node.outputs) & set(graph.nodes[after].inputs):
        return ""
    return f"{node.path.replace('/', '-')}.ended"


def _reads(graph: Graph, node: Node) -> list[tuple[str, int | None]]:
    """Base names of the files that must be there before the job, each with the package that writes it."""
    files = [file for file in node.package.inputs() if file.acquisition is not Acquisition.SELF]
    found = [(file.name, graph.producers.get(file.name)) for file in files]
    before = _token(graph, graph.nodes[node.index - 1]) if node.sequence > 1 else ""
    return [*found, (before, node.index - 1)] if before else found


def _writes(graph: Graph, node: Node) -> list[str]:
    token = _token(graph, node)
    return [*node.outputs, token] if token else list(node.outputs)


def _shares(graph: Graph, nodes: Sequence[Node], names: Names) -> Iterator[list[Node]]:
    """Packages of one kind, in shares whose groups are not too long for one task."""
    share: list[Node] = []
    length = elements = 0
    for node in nodes:
        files = [*(name for name, _ in _reads(graph, node)), *_writes(graph, node)]
        more = (
            sum(len(name) + len(names.prefix) + 40 for name in files) + len(escape(_command(graph, node, names))) + 200
        )
        if share and (length + more > LONGEST_GROUPS or elements + len(files) + 5 > MOST_ELEMENTS):
            yield share
            share, length, elements = [], 0, 0
        share.append(node)
        length, elements = length + more, elements + len(files) + 5
    yield share


def _group(graph: Graph, node: Node, place: Mapping[int, int], names: Names, canceled: Collection[int]) -> str:
    """The `<job>` of a package. One that is canceled reads nothing, so its group never becomes a job."""
    reads = [] if node.index in canceled else [one for one in _reads(graph, node) if one[1] not in canceled]
    full = [name if maker is None else names.file(place[maker], name) for name, maker in reads]
    files = "".join(f"<file>{name}</file>" for name in full)
    listed = f"<inds><name>{names.prefix}</name>{files}</inds>" if files else ""
    outputs = "".join(f"<output>{name}</output>" for name in _writes(graph, node))
    return f"<job><command>{escape(_command(graph, node, names))}</command>{listed}{outputs}</job>"


def _command(graph: Graph, node: Node, names: Names) -> str:
    """The shell command of a package: files of other packages get their base names, and then it runs."""
    steps = []
    if any(maker is not None for _, maker in _reads(graph, node)):
        steps.append(f'for f in {names.prefix}.*; do ln -s "$f" "${{f#{names.prefix}.*.}}" || exit; done')
    steps.append(f"{{ {_kept(_run(node.package))}\n}}")
    if token := _token(graph, node):
        steps.append(f"echo ended > {token}")
    return " && ".join(steps)


def _kept(run: str) -> str:
    """A command in which the program that runs it finds nothing to replace: `%IN` would become the list of inputs there."""
    if "%IN" not in run:
        return run
    return f'eval "$(printf %s {shlex.quote(run.replace("%", "%_"))} | sed s/%_/%/g)"'


def _run(package: Package) -> str:
    if not package.script:
        return package.binaries[0].run
    return " ".join((package.script, *(shlex.quote(binary.run) for binary in package.binaries)))
