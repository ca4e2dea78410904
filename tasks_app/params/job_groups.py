"""Groups of files that stay together: the XML of `loadXML`, as `prun --loadXML` sends it. Pure.

Each `<job>` of the XML is a group. Its number, counted from 0, is the boundary of its files, and it may have a command and
outputs of its own. The XML is hostile: a document type, and with it every entity, is refused before anything of it is read;
size, depth and the numbers of elements, datasets, groups, files and outputs are bounded, and reading takes steps in proportion
to the XML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import quote
from xml.parsers import expat

from jedisite.vocabulary.words import is_one_line, rather, thousands
from tasks_app.params.filelists import why_not_carried

LONGEST_XML: Final = 1_000_000
"""Characters; more is refused by the table of keys, before anybody parses it."""
DEEPEST: Final = 8
MOST_ELEMENTS: Final = 60_000
MOST_GROUPS: Final = 10_000
MOST_FILES: Final = 1000
"""Files of one group, of all its datasets together: a job reads no more."""
MOST_DATASETS: Final = 1000
"""That stand outside of the groups, for all of them."""
MOST_OUTPUTS: Final = 100
MOST_OUTPUTS_IN_ALL: Final = 100_000
"""Of all groups together: an output for all of them counts in each."""
LONGEST_OUTPUT: Final = 150
LONGEST_PREPEND: Final = 255
"""No name of a file is longer."""
LONGEST_COMMAND: Final = 20_000
_TRUE: Final = frozenset({"1", "true", "True", "TRUE", "yes", "Yes", "YES"})
_FALSE: Final = frozenset({"", "0", "false", "no"})
INSIDE: Final[Mapping[str, Sequence[str]]] = {
    "submission": ("inds", "command", "output", "job", "outds", "title", "tag"),
    "job": ("inds", "command", "output", "option"),
    "inds": ("stream", "name", "file"),
}
"""Elements by the one in which they stand. title and tag are for people: who gives them is told that nothing comes of them."""
ATTRIBUTES: Final[Mapping[str, Sequence[str]]] = {
    "inds": ("primary", "manytime", "onetime"),
    "option": ("prepend", "forward", "name"),
}
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@%#~-]*")


class BadGroups(ValueError):
    """The XML cannot be used; `where` is the place, such as `job[2].inds[0].file[1]`."""

    def __init__(self, where: str, sentence: str) -> None:
        self.where = where
        super().__init__(sentence)


def bare(dataset: str) -> str:
    """A dataset's name without its scope and without the `/` of a container: prun leaves them out at some places."""
    return dataset.rpartition(":")[2].rstrip("/")


@dataclass(frozen=True, slots=True)
class JobGroup:
    """One group: its files by dataset, what its job runs, and what that writes.

    `prepend` begins the names of its outputs, `forward` sets variables for its command.
    """

    files: Mapping[str, Sequence[str]]
    command: str = ""
    outputs: Sequence[str] = ()
    prepend: str = ""
    forward: str = ""

    @property
    def exec_text(self) -> str:
        """What `${XML_EXESTR}` becomes: variables and command, percent-encoded as PanDA's wrappers read them."""
        return quote(f"{self.forward} {self.command}")

    @property
    def endings(self) -> list[str]:
        """What follows the task's own template in the names of the outputs."""
        return [f".{self.prepend}.{name}" if self.prepend else f".{name}" for name in self.outputs]


@dataclass(frozen=True)
class JobGroups:
    """All groups in order. `many_times`: datasets whose files every group reads; `one_time`: each file in one group only.

    Remarks are made of the others: `outds`, the dataset of the outputs as the XML has it; `streams` of datasets; `for_people`,
    the elements that say nothing.
    """

    groups: Sequence[JobGroup]
    primary: str = ""
    many_times: frozenset[str] = frozenset()
    one_time: frozenset[str] = frozenset()
    outds: str = ""
    streams: Mapping[str, str] = field(default_factory=dict)
    for_people: Sequence[str] = ()

    def of_dataset(self, dataset: str) -> Mapping[str, Sequence[int]]:
        """Which groups each file of a dataset belongs to; empty for a dataset of which no group names files."""
        return self._numbers.get(bare(dataset), {})

    @cached_property
    def _numbers(self) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """The groups of each file, by dataset: found in one walk through the groups, however many datasets are asked for."""
        found: dict[str, dict[str, list[int]]] = {}
        for number, group in enumerate(self.groups):
            for name, lfns in group.files.items():
                of_files = found.setdefault(name, {})
                for lfn in lfns:
                    of_files.setdefault(lfn, []).append(number)
        return found


@lru_cache(maxsize=4)
def read_groups(xml: str) -> JobGroups:
    """Read and check the XML. Raises BadGroups."""
    root = _tree(xml)
    if root.tag != "submission":
        raise BadGroups("", f"The outermost element is <submission>, not <{root.tag[:40]}>.")
    _check_known(root, "")
    reader = _Reader(root)
    groups = tuple(reader.group(number, job) for number, job in enumerate(root.all("job")))
    if not groups:
        raise BadGroups("", "It has no <job>: each group of files is one.")
    outds = next(root.all("outds"), None)
    found = JobGroups(
        groups,
        reader.primary,
        frozenset(reader.many_times),
        frozenset(reader.one_time),
        bare(outds.text) if outds is not None else "",
        reader.streams,
        tuple(tag for tag in ("title", "tag") if any(root.all(tag))),
    )
    _check_names(found)
    _check_one_time(found)
    return found


@dataclass(slots=True)
class _Element:
    tag: str
    attributes: Mapping[str, str]
    children: list[_Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    def all(self, tag: str) -> Iterator[_Element]:
        return (child for child in self.children if child.tag == tag)

    def is_set(self, name: str) -> bool:
        return self.attributes.get(name, "") in _TRUE


def _tree(xml: str) -> _Element:
    """The elements. Raises BadGroups for what is no XML, and for all of XML that could harm."""
    if len(xml) > LONGEST_XML:
        raise BadGroups("", f"It has more than {LONGEST_XML} characters.")
    parser = expat.ParserCreate(encoding="utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    stack, roots, number = list[_Element](), list[_Element](), 0

    def begins(tag: str, attributes: dict[str, str]) -> None:
        nonlocal number
        number += 1
        if number > MOST_ELEMENTS:
            raise BadGroups("", f"It has more than {MOST_ELEMENTS} elements.")
        if len(stack) >= DEEPEST:
            raise BadGroups("", f"Its elements stand more than {DEEPEST} deep, at line {parser.CurrentLineNumber}.")
        element = _Element(tag, attributes)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def refused(*_: object) -> int:
        raise BadGroups("", "A document type (<!DOCTYPE>) and entities of its own are not allowed.")

    def instructed(target: str, _: str) -> None:
        raise BadGroups("", f"An instruction to a program (<?{target[:40]}?>) has no effect here: leave it out.")

    parser.StartElementHandler = begins
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.CharacterDataHandler = lambda text: stack[-1].pieces.append(text) if stack else None
    parser.StartDoctypeDeclHandler = refused
    parser.EntityDeclHandler = refused
    parser.ExternalEntityRefHandler = refused
    parser.ProcessingInstructionHandler = instructed
    try:
        parser.Parse(xml.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise BadGroups(
            "", f"It is not well-formed XML: {expat.ErrorString(error.code)}, line {error.lineno}."
        ) from error
    return roots[0]


def _check_known(element: _Element, where: str) -> None:
    """Raises BadGroups for an element or attribute that nothing reads: it would be misspelt."""
    allowed = ATTRIBUTES.get(element.tag, ())
    for name, value in element.attributes.items():
        at = f"{where}.{name}" if where else name
        if name not in allowed:
            raise BadGroups(at, rather(f"{name[:40]} is not an attribute of <{element.tag}>", name, allowed))
        if name != "name" and value not in _TRUE and value.lower() not in _FALSE:
            raise BadGroups(at, f"{name} is true or false, not {value[:40]}.")
    numbers = Counter[str]()
    for child in element.children:
        inside = INSIDE.get(element.tag, ())
        if child.tag not in inside:
            raise BadGroups(where, rather(f"<{child.tag[:40]}> does not stand in <{element.tag}>", child.tag, inside))
        at = f"{child.tag}[{numbers[child.tag]}]"
        _check_known(child, f"{where}.{at}" if where else at)
        numbers[child.tag] += 1


class _Reader:
    """What holds for all groups, and the groups one by one."""

    def __init__(self, root: _Element) -> None:
        self.command = _command(next(root.all("command"), None), "command")
        outputs = (_output(one, f"output[{n}]") for n, one in enumerate(root.all("output")))
        self.outputs: Sequence[str] = tuple(dict.fromkeys(outputs))
        self.primary, self.many_times, self.one_time = "", list[str](), list[str]()
        self.outputs_so_far = 0
        self.streams = dict[str, str]()
        for number, inds in enumerate(root.all("inds")):
            where = f"inds[{number}]"
            if number >= MOST_DATASETS:
                raise BadGroups(where, f"More than {MOST_DATASETS} datasets stand outside of the groups.")
            name = _dataset(inds, where)
            if inds.is_set("primary"):
                if self.primary:
                    raise BadGroups(where, f"{self.primary} is the primary dataset already.")
                self.primary = name
            if (stream := next(inds.all("stream"), None)) is not None and stream.text:
                self.streams[name] = stream.text
            many, one = inds.is_set("manytime"), inds.is_set("onetime")
            if many and (one or inds.is_set("primary")):
                raise BadGroups(
                    where, "A dataset of which every job reads all (manytime) is neither onetime nor primary."
                )
            self.many_times += [name] * many
            self.one_time += [name] * one

    def group(self, number: int, job: _Element) -> JobGroup:
        if number >= MOST_GROUPS:
            raise BadGroups(f"job[{number}]", f"There are more than {MOST_GROUPS} groups.")
        where = f"job[{number}]"
        files, outputs = self._files(job, where), self._outputs(job, where)
        options = [_option(one, f"{where}.option[{n}]") for n, one in enumerate(job.all("option"))]
        prepend = "_".join(f"{name}{value}" for name, value, prepends, _ in options if prepends)
        if len(prepend) > LONGEST_PREPEND:
            said = f"Its options with prepend begin the names of its outputs with {len(prepend)} characters"
            raise BadGroups(where, f"{said}, and a file name has at most {LONGEST_PREPEND}.")
        command = _command(next(job.all("command"), None), f"{where}.command") or self.command
        return JobGroup(
            {dataset: tuple(own) for dataset, own in files.items() if own},
            command,
            outputs,
            prepend,
            " ".join(f"{name}={value}" for name, value, _, forward in options if forward),
        )

    def _files(self, job: _Element, where: str) -> dict[str, dict[str, None]]:
        """The files of a group by dataset, each once."""
        if (many := sum(1 for inds in job.all("inds") for _ in inds.all("file"))) > MOST_FILES:
            raise BadGroups(where, f"It has {many} files, and a group is one job, which reads at most {MOST_FILES}.")
        files: dict[str, dict[str, None]] = {}
        for place, inds in enumerate(job.all("inds")):
            at = f"{where}.inds[{place}]"
            own = files.setdefault(_dataset(inds, at), {})
            for n, one in enumerate(inds.all("file")):
                lfn = _file(one, f"{at}.file[{n}]")
                if lfn in own:
                    raise BadGroups(at, f"The file {lfn} stands in it twice.")
                own[lfn] = None
        if self.primary and not files.get(self.primary):
            raise BadGroups(where, f"It names no file of the primary dataset {self.primary}.")
        return files

    def _outputs(self, job: _Element, where: str) -> Sequence[str]:
        """The outputs of a group: those for all groups, and its own."""
        own = [_output(one, f"{where}.output[{n}]") for n, one in enumerate(job.all("output"))]
        outputs = tuple(dict.fromkeys([*self.outputs, *own])) if own else self.outputs
        if len(outputs) > MOST_OUTPUTS:
            raise BadGroups(where, f"It has {len(outputs)} outputs, and {MOST_OUTPUTS} are allowed.")
        self.outputs_so_far += len(outputs)
        if self.outputs_so_far > MOST_OUTPUTS_IN_ALL:
            most = f"{thousands(MOST_OUTPUTS_IN_ALL)}, where an output for all groups counts in each"
            raise BadGroups(
                where, f"With it the groups have more outputs than {most}: divide the work among several tasks."
            )
        return outputs


def _dataset(inds: _Element, where: str) -> str:
    name = next(inds.all("name"), None)
    if name is None or not bare(name.text):
        raise BadGroups(f"{where}.name", "Each <inds> needs the <name> of its dataset.")
    return bare(name.text)


def _file(element: _Element, where: str) -> str:
    lfn = element.text.rpartition(":")[2]
    if not 0 < len(lfn) <= 256 or not is_one_line(lfn):
        raise BadGroups(where, "A <file> holds one name of 1 to 256 characters on one line.")
    if bad := why_not_carried(lfn):
        raise BadGroups(where, f"{lfn[:60]} is not the name of a file that a job could read: {bad}.")
    return lfn


def _output(element: _Element, where: str) -> str:
    name = element.text
    if len(name) > LONGEST_OUTPUT or _FILE_NAME.fullmatch(name) is None:
        raise BadGroups(
            where, f"An <output> is a file name of at most {LONGEST_OUTPUT} letters, digits and _ . + @ % # ~ - only."
        )
    return name


def _command(element: _Element | None, where: str) -> str:
    text = element.text if element is not None else ""
    if len(text) > LONGEST_COMMAND:
        raise BadGroups(where, f"A command has at most {LONGEST_COMMAND} characters, not {len(text)}.")
    return text


def _option(element: _Element, where: str) -> tuple[str, str, bool, bool]:
    """Name, value, whether it begins the names of outputs, and whether the command gets it."""
    name, value = element.attributes.get("name", ""), element.text
    if re.fullmatch(r"\w{1,40}", name) is None:
        raise BadGroups(where, "An <option> needs a name of letters, digits and _.")
    prepend, forward = element.is_set("prepend"), element.is_set("forward")
    if not (prepend or forward):
        raise BadGroups(where, f"The option {name} has no effect: set prepend or forward to true.")
    if prepend and re.fullmatch(r"[\w.+-]{0,60}", value, re.ASCII) is None:
        raise BadGroups(where, f"{name} begins the names of outputs: use at most 60 letters, digits and _ . + - only.")
    return name, value, prepend, forward


def _check_names(found: JobGroups) -> None:
    seen: dict[str, int] = {}
    for number, group in enumerate(found.groups):
        for ending in group.endings:
            if ending in seen:
                raise BadGroups(
                    f"job[{number}].output",
                    f"{ending[1:]} is an output of job[{seen[ending]}] as well: give them an <option> with prepend.",
                )
            seen[ending] = number


def _check_one_time(found: JobGroups) -> None:
    for name in sorted(found.one_time):
        for lfn, numbers in found.of_dataset(name).items():
            if len(numbers) > 1:
                raise BadGroups(
                    f"job[{numbers[1]}].inds", f"{lfn} of {name} is read once (onetime), and job[{numbers[0]}] has it."
                )
