"""The command line of jobs: a template compiled once a task and rendered once a job.

`${STREAM}` becomes the file names of a stream, `${NAME}` a value of the job. What the form of a list is, stands in
`filelists`. `$JEDITASKID`, `$JOBSETID` and `$PANDAID` are values too.

Names that JEDI fills must be filled: a job is not made with a hole in its command line. What begins with another name,
such as a shell's `${HOME}` or `${file%.txt}`, is left alone when the streams of the task are given at compilation; what
begins with one of ours and goes on as no placeholder does, such as `${IN%.txt}`, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tasks_app.params import filelists
from tasks_app.params.arithmetic import BadFormula, compile_formula, result_text

Streams = Mapping[str, Sequence[str]]
Values = Mapping[str, str | int]
Part = Callable[[Streams, Values], str]

# What `render` gets as values. SEQNUMBER is a stream of one name, outputs and logs are streams as well.
VALUE_NAMES = frozenset(
    {
        "SN",
        "RNDMSEED",
        "MAXEVENTS",
        "SKIPEVENTS",
        "FIRSTEVENT",
        "SURL",
        "ATTEMPTNR",
        "MIDDLENAME",
        "LIB",
        "SEGMENT_ID",
        "SEGMENT_NAME",
        "XML_OUTMAP",
        "XML_EXESTR",
        "JEDITASKID",
        "JOBSETID",
        "PANDAID",
    }
)
NEVER_FILLED = frozenset({"SEGMENT_ID", "SEGMENT_NAME"})
"""Names of JEDI's that no job of this site has a value for: a command line that asks for them suits no job."""
OF_GROUPS = frozenset({"XML_OUTMAP", "XML_EXESTR"})
"""Names that only jobs of a task with loadXML have a value for: the names of the group's outputs, and its command."""
_OURS = re.compile(r"IN(?:_\w+)?|SEQNUMBER|(?:TRN_)?(?:OUTPUT|LOG)\d+|(?:TRN_)?LOG_MERGE")
_FORMS: dict[str, Callable[[Sequence[str]], str]] = {
    "": filelists.compact,
    "L": filelists.comma_list,
    "A": filelists.quoted_list,
    "S": filelists.blank_list,
    "T": filelists.printed_list,
    "E": filelists.decoded_list,
}

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}|\$(JEDITASKID|JOBSETID|PANDAID)\b")
_INSIDE = re.compile(
    r"(?P<names>\w+(?:,\w+)*)"
    r"(?:\[(?P<from>\d*):(?P<to>\d*)\])?"
    r"(?:/(?:M\[(?P<formula>[^\[\]]*)\]|(?P<form>[A-Z])))?"
)
_NAMES = re.compile(r"\w+(?:,\w+)*")
_MERGE = re.compile(r"(TRN_\w+):(\w+)")
_WIDTH = re.compile(r"%?0?(\d{1,2})?d")


class UnresolvedPlaceholder(ValueError):
    """A job has nothing for a placeholder; `name` is what stands between the brackets."""

    def __init__(self, name: str, reason: str = "this job has no value for it") -> None:
        self.name = name
        super().__init__(f"${{{name}}} cannot be filled: {reason}.")


class BadTemplate(ValueError):
    """A template cannot be used for any job; the message says why."""


@dataclass(frozen=True, slots=True)
class JobParamsTemplate:
    """A compiled template. `text` is what it was made from, `names` the streams and values that it asks for."""

    text: str
    names: frozenset[str]
    _pieces: tuple[str, ...]
    _parts: tuple[tuple[int, Part], ...]

    def render(self, streams: Streams, values: Values) -> str:
        """The command line of one job. Raises UnresolvedPlaceholder."""
        pieces = list(self._pieces)
        for index, part in self._parts:
            pieces[index] = part(streams, values)
        return "".join(pieces)


def compile_template(
    text: str, *, streams: Collection[str] | None = None, keep_order: bool = False
) -> JobParamsTemplate:
    """Compile a template.

    `streams` names the streams of the task; with it, `${...}` that is neither one of them nor a name of JEDI's is left
    as it stands. File names are sorted and listed once, unless `keep_order` says that their order matters.
    Raises BadTemplate.
    """
    pieces: list[str] = []
    parts: list[tuple[int, Part]] = []
    names: set[str] = set()
    begin = 0
    for match in _PLACEHOLDER.finditer(text):
        part = _compile(match, streams, names, keep_order)
        if part is None:
            continue
        pieces += [text[begin : match.start()], ""]
        parts.append((len(pieces) - 1, part))
        begin = match.end()
    pieces.append(text[begin:])
    return JobParamsTemplate(text, frozenset(names), tuple(pieces), tuple(parts))


def bad_placeholders(text: str, streams: Collection[str]) -> list[str]:
    """What is wrong with placeholders of ours, in order of appearance, each once: `compile_template` refuses the first."""
    found: dict[str, None] = {}
    for match in _PLACEHOLDER.finditer(text):
        try:
            _compile(match, streams, set(), False)
        except BadTemplate as error:
            found.setdefault(str(error))
    return list(found)


def names_in(text: str) -> list[str]:
    """Stream and value names of all placeholders, in order of appearance, each once."""
    found: dict[str, None] = {}
    for match in _PLACEHOLDER.finditer(text):
        inside = _INSIDE.fullmatch(match[1]) if match[1] is not None else None
        for name in inside["names"].split(",") if inside else [match[2]] if match[2] else []:
            found.setdefault(name)
    return list(found)


def is_ours(name: str) -> bool:
    """Whether JEDI itself promises to fill this name."""
    return name in VALUE_NAMES or _OURS.fullmatch(name) is not None


def _compile(match: re.Match[str], streams: Collection[str] | None, names: set[str], keep_order: bool) -> Part | None:
    """The part for one placeholder; None for text to be left alone."""
    if match[2] is not None:
        names.add(match[2])
        return _value(match[2])
    merge = _MERGE.fullmatch(match[1])
    if merge is not None:
        return _merge_groups(merge[1], merge[2], match[1])
    begin = _NAMES.match(match[1])
    wanted = begin[0].split(",") if begin else []
    ours = [name for name in wanted if is_ours(name) or (streams is not None and name in streams)]
    if streams is not None and not ours:
        return None
    if match[1].startswith("SN:"):
        return _serial_of_width(match[1])
    inside = _INSIDE.fullmatch(match[1])
    if inside is None:
        raise BadTemplate(_no_placeholder(match[0], ours))
    names.update(wanted)
    if match[1] in ("SN/P", "SN"):
        return _serial if match[1] == "SN/P" else _value("SN")
    return _stream_part(match[1], wanted, inside, keep_order)


def _no_placeholder(text: str, ours: Sequence[str]) -> str:
    said = f"{text} is not a placeholder: give a name, then optionally [from:to], then optionally /X."
    return f"{said} {ours[0]} is filled by this site; give the shell variable another name." if ours else said


def serial_width(text: str) -> int | None:
    """Digits to which a serial number is filled up, of the `06d` in `${SN:06d}`; None when that is no width."""
    width = _WIDTH.fullmatch(text)
    return int(width[1] or 0) if width else None


def _serial_of_width(whole: str) -> Part:
    wanted = whole.removeprefix("SN:")
    width = serial_width(wanted)
    if width is None:
        raise BadTemplate(f"${{{whole}}}: {wanted!r} is not a width such as 06d.")

    def part(streams: Streams, values: Values) -> str:
        try:
            return f"{int(values['SN']):0{width}d}"
        except KeyError:
            raise UnresolvedPlaceholder("SN") from None

    return part


def _stream_part(whole: str, wanted: list[str], inside: re.Match[str], keep_order: bool) -> Part:
    if inside["formula"] is not None:
        return _formula(whole, wanted[0], inside["formula"])
    form = inside["form"] or ""
    if form == "F":
        handed = filelists.handed_over(wanted[0])
        return lambda streams, values: handed
    if form not in _FORMS:
        known = ", ".join(sorted(f for f in [*_FORMS, "F", "M[...]"] if f))
        raise BadTemplate(f"${{{whole}}}: /{form} is not a list format; the formats are {known}.")
    cut = None if inside["from"] is None else (int(inside["from"] or 0), int(inside["to"]) if inside["to"] else None)
    if len(wanted) == 1 and cut is None:
        return _one_stream(wanted[0], form, keep_order)
    return _several(whole, wanted, form, cut, keep_order)


def _value(name: str) -> Part:
    def part(streams: Streams, values: Values) -> str:
        try:
            return str(values[name])
        except KeyError:
            raise UnresolvedPlaceholder(name) from None

    return part


def _serial(streams: Streams, values: Values) -> str:
    try:
        return f"{int(values['SN']):06d}"
    except KeyError:
        raise UnresolvedPlaceholder("SN") from None


def _one_stream(name: str, form: str, keep_order: bool) -> Part:
    """The usual case, without a slice and without a second stream."""
    write = _FORMS[form]
    single_is_plain = form in ("", "L", "S")

    def part(streams: Streams, values: Values) -> str:
        files = streams.get(name)
        if not files:
            if name in values:
                return str(values[name])
            raise UnresolvedPlaceholder(name)
        if single_is_plain and len(files) == 1:
            return files[0]
        return write(files if keep_order else sorted(set(files)))

    return part


def _several(whole: str, wanted: list[str], form: str, cut: tuple[int, int | None] | None, keep_order: bool) -> Part:
    write = _FORMS[form]

    def part(streams: Streams, values: Values) -> str:
        files: list[str] = []
        for name in wanted:
            own = streams.get(name)
            if not own:
                raise UnresolvedPlaceholder(name)
            files += own if keep_order else sorted(set(own))
        if cut is not None:
            files = files[cut[0] : cut[1]]
            if not files:
                raise UnresolvedPlaceholder(whole, "the job has fewer files")
        return write(files)

    return part


def _formula(whole: str, name: str, text: str) -> Part:
    try:
        formula = compile_formula(text)
    except BadFormula as error:
        raise BadTemplate(f"${{{whole}}}: {error}") from error
    if not any(_has_result(formula, number) for number in _TRIED):
        raise BadTemplate(f"${{{whole}}}: it has no result, for example because it divides by zero.")

    def part(streams: Streams, values: Values) -> str:
        files = streams.get(name) or ([str(values[name])] if name in values else [])
        if len(files) != 1:
            raise UnresolvedPlaceholder(whole, f"arithmetic needs one number, and there are {len(files)}")
        try:
            return result_text(formula(int(files[0])))
        except (ValueError, ArithmeticError) as error:
            raise UnresolvedPlaceholder(whole, str(error)) from error

    return part


_TRIED = (0, 1, 2, 10, 1000, 10**5, 10**9)


def _has_result(formula: Callable[[int], object], number: int) -> bool:
    try:
        formula(number)
    except (ValueError, ArithmeticError):
        return False
    return True


def _merge_groups(sources: str, targets: str, whole: str) -> Part:
    """`in1,in2:out` for each pair of streams such as TRN_OUTPUT0 and OUTPUT0; pairs without inputs are left out."""

    def part(streams: Streams, values: Values) -> str:
        groups = []
        for source, files in streams.items():
            number = source.removeprefix(sources)
            if not files or number == source or (number and not number.isdecimal()):
                continue
            target = streams.get(targets + number) or streams.get(targets)
            if not target:
                raise UnresolvedPlaceholder(whole, f"there is no file for {targets}{number}")
            groups.append((int(number or 0), f"{','.join(files)}:{target[0]}"))
        return " ".join(text for _, text in sorted(groups))

    return part
