"""The compact text of a workflow, as a person writes it: read into the JSON document, which is then checked. Pure.

    job reco001
    stage 1
    repeat i 1..3
    line
      binary reco version p10
        run reco.sh {i}
        in raw{i} pre-fetch from lab.raw
        out reco{i}_1 reco{i}_2 filt{i}
    end

Each statement is a line and begins with its word. Indents say nothing; `#` begins a comment at the start of a line.
`repeat NAME FROM..TO` repeats the lines up to `end`, with `{NAME}` replaced; repeats stand in no other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tasks_app.params.faults import Faults, FieldError, ParamErrors, shown
from tasks_app.params.shellwords import words_of
from tasks_app.workflows.rules.definition import Acquisition, Keep

LONGEST_TEXT: Final = 5_000_000
MOST_STATEMENTS: Final = 200_000
"""After repeats."""
_REPEAT: Final = re.compile(r"repeat\s+([a-z]{1,20})\s+([0-9]{1,20})\.\.([0-9]{1,20})")
_PATH: Final = re.compile(r"stages\[[0-9]+\](?:\.[a-z_]+\[[0-9]+\])*")
HIGHEST: Final = 999_999
"""To which repeats count."""
_ACQUISITIONS: Final = frozenset(one.value for one in Acquisition)
_KEEPS: Final = frozenset(one.value for one in Keep)
Record = dict[str, Any]


def document_of(text: str) -> tuple[Record, Mapping[str, int]]:
    """The document that a text describes, and the line on which each of its records stands, by path.

    Raises ParamErrors with every fault of the text, with fields such as `line 12`.
    """
    faults = Faults()
    reader = _TextReader(faults)
    if len(text) > LONGEST_TEXT:
        faults.add("", "length", f"It has more than {LONGEST_TEXT} characters.")
        faults.raise_if_any()
    for number, statement in _statements(text, faults):
        reader.statement(number, statement)
    if not reader.document.get("name"):
        faults.add("line 1", "required", "A workflow begins with `job NAME`.")
    faults.raise_if_any()
    return reader.document, reader.lines


def on_lines(errors: ParamErrors, lines: Mapping[str, int]) -> ParamErrors:
    """Faults of a document that was a text: each with the line of its record in place of the path, also of those it names."""
    found = []
    for error in errors.errors:
        line = _line_of(error.field, lines)
        here = "another round of its repeat" if error.rule == "one producer" else "this line"

        def in_words(path: re.Match[str], line: int = line, here: str = here) -> str:
            other = _line_of(path[0], lines)
            return (here if other == line else f"line {other}") if other else path[0]

        message = _PATH.sub(in_words, error.message)
        found.append(FieldError(f"line {line}" if line else error.field, error.rule, message))
    return ParamErrors(tuple(dict.fromkeys(found)))  # a line in a repeat has its faults once


def _line_of(path: str, lines: Mapping[str, int]) -> int:
    """The line of a record, or of the one that holds it; 0 without one."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines[path] if path else 0


def _statements(text: str, faults: Faults) -> Iterator[tuple[int, str]]:
    """Statements with the numbers of their lines, repeats written out."""
    block: list[tuple[int, str]] | None = None
    name, values, began, total = "", range(0), 0, 0
    for number, raw in enumerate(text.split("\n"), 1):
        statement = raw.strip()
        if not statement or statement.startswith("#"):
            continue
        word = statement.split(None, 1)[0]
        if word == "repeat":
            found = _REPEAT.fullmatch(statement)
            if block is not None:
                faults.add(
                    f"line {number}", "repeat", f"It stands in the repeat of line {began}: repeats stand in no other."
                )
            elif found is None:
                name, values, block, began = "", range(0), [], number  # its end is no fault
                faults.add(f"line {number}", "repeat", "Write `repeat NAME FROM..TO`, such as `repeat i 1..3`.")
            elif max(int(found[2]), int(found[3])) > HIGHEST:
                name, values, block, began = "", range(0), [], number
                said = f"{max(found[2], found[3], key=int)} is too large: a repeat counts to {HIGHEST} at most."
                faults.add(f"line {number}", "at most", said)
            else:
                name, values = found[1], range(int(found[2]), int(found[3]) + 1)
                block, began = [], number
                if not values:
                    faults.add(f"line {number}", "repeat", f"{found[2]}..{found[3]} is empty.")
            continue
        if word == "end" and statement == "end":
            if block is None:
                faults.add(f"line {number}", "repeat", "There is no repeat that this could end.")
                continue
            total += len(block) * len(values)
            if total > MOST_STATEMENTS:
                faults.add(
                    f"line {began}", "at most", f"With its repeats the text has more than {MOST_STATEMENTS} lines."
                )
                return
            for value in values:
                for at, line in block:
                    yield at, line.replace(f"{{{name}}}", str(value))
            block = None
            continue
        if block is not None:
            block.append((number, statement))
            continue
        total += 1
        if total > MOST_STATEMENTS:
            faults.add(f"line {number}", "at most", f"It has more than {MOST_STATEMENTS} lines.")
            return
        yield number, statement
    if block is not None:
        faults.add(f"line {began}", "repeat", "Its `end` is missing.")


class _TextReader:
    """Puts statements into the record that is open. Statements before their record are a fault."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.document: Record = {"stages": []}
        self.lines: dict[str, int] = {}
        self.open: dict[str, tuple[str, Record]] = {}
        self.at = 0
        self.words: Mapping[str, Callable[[str], None]] = {
            "job": self._job,
            "originator": lambda rest: self._set("job", "originator", self._one(rest)),
            "priority": lambda rest: self._set("job", "priority", self._number(rest)),
            "hold": lambda rest: self._flag(rest, "hold"),
            "restart": self._restart,
            "stage": self._stage,
            "line": self._line,
            "package": self._package,
            "script": lambda rest: self._set("package", "script", rest),
            "binary": self._binary,
            "run": lambda rest: self._set("binary", "run", rest),
            "in": self._inputs,
            "out": self._outputs,
        }

    def statement(self, number: int, text: str) -> None:
        self.at = number
        word, _, rest = text.partition(" ")
        if word not in self.words:
            self.fault("known word", f"{shown(word)} begins no statement", word)
            return
        self.words[word](rest.strip())

    def fault(self, rule: str, said: str, name: str = "", known: Any = None) -> None:
        if known is None:
            known = (*self.words, "repeat", "end")
        where = f"line {self.at}"
        self.faults.add_unknown(where, said, name[:100], known, rule) if name else self.faults.add(
            where, rule, f"{said}."
        )

    def _words(self, rest: str) -> list[str]:
        try:
            return words_of(rest)
        except ValueError as error:
            self.fault("quotes", str(error))
            return []

    def _one(self, rest: str) -> str:
        words = self._words(rest)
        if len(words) != 1:
            self.fault("one word", "Exactly one word follows here; put quotes around several")
        return words[0] if words else ""

    def _number(self, word: str) -> int:
        if re.fullmatch(r"-?[0-9]{1,9}", word) is None:
            self.fault("number", f"Expected a whole number, got {shown(word)}")
            return 0
        return int(word)

    def _flag(self, rest: str, name: str) -> None:
        if rest not in ("", "yes", "no"):
            self.fault("yes or no", f"After {name} stands yes, no or nothing")
        self._set("job", name, rest != "no")

    def _set(self, kind: str, name: str, value: Any) -> None:
        record = self.document if kind == "job" else self.open[kind][1] if kind in self.open else None
        if record is None:
            self.fault("order", f"It belongs to a {kind}, and there is none before it")
        elif name in record:
            self.fault("once", f"The {kind} has its {name} already")
        else:
            record[name] = value
            if kind == "job":
                self.lines[name] = self.at

    def _begin(self, kind: str, above: str, key: str, record: Record, inside: tuple[str, ...]) -> None:
        """Open a record inside of the one above it, which closes those of its own kind and below."""
        path, parent = self.open.get(above, ("", self.document))
        listed: list[Record] = parent.setdefault(key, [])
        place = f"{path}.{key}[{len(listed)}]" if path else f"{key}[{len(listed)}]"
        listed.append(record)
        self.lines[place] = self.at
        for name in (kind, *inside):
            self.open.pop(name, None)
        self.open[kind] = (place, record)

    def _needs(self, above: str, kind: str) -> bool:
        if above in self.open:
            return True
        self.fault("order", f"A {kind} stands in a {above}, and there is none before it")
        return False

    def _job(self, rest: str) -> None:
        self._set("job", "name", self._one(rest))

    def _restart(self, rest: str) -> None:
        words = self._words(rest)
        if len(words) < 2:
            self.fault("form", "Write `restart REASON NUMBER`, such as `restart looping 1`")
            return
        reason = " ".join(words[:-1])
        counts = self.document.setdefault("restarts", {})
        if reason in counts:
            self.fault("once", f"The restarts of {shown(reason)} stand before already")
        counts[reason] = self._number(words[-1])
        self.lines[f"restarts.{reason}"] = self.at

    def _stage(self, rest: str) -> None:
        record: Record = {"number": self._number(rest)} if rest else {}
        self._begin("stage", "", "stages", record, ("line", "package", "binary"))

    def _line(self, rest: str) -> None:
        record: Record = {}
        for word in self._words(rest):
            if word == "early-start":
                record["early_start"] = True
            elif word.isdecimal() and "number" not in record:
                record["number"] = self._number(word)
            else:
                self.fault("known word", f"{shown(word)} does not follow line", word, ("early-start",))
        if self._needs("stage", "line"):
            self._begin("line", "stage", "lines", record, ("package", "binary"))

    def _package(self, rest: str) -> None:
        record: Record = {}
        into: list[str] | None = None
        for word in self._words(rest):
            if word in ("nodes", "not"):
                into = record.setdefault("nodes" if word == "nodes" else "not_nodes", [])
            elif word == "quiet":
                record["notify"] = False
                into = None
            elif into is not None:
                into.append(word)
            elif word.isdecimal() and "number" not in record:
                record["number"] = self._number(word)
            else:
                self.fault("known word", f"{shown(word)} does not follow package", word, ("nodes", "not", "quiet"))
        if self._needs("line", "package"):
            self._begin("package", "line", "packages", record, ("binary",))

    def _binary(self, rest: str) -> None:
        if "package" not in self.open and "line" in self.open:
            self._package("")
        words = iter(self._words(rest))
        record: Record = {"software": next(words, "")}
        numbers = {"cpu": "cpu_percent", "work": "work_mb", "time": "run_time_s"}
        for word in words:
            if word == "sam":
                record["sam"] = True
            elif word == "version":
                record["version"] = next(words, "")
            elif word in numbers:
                record[numbers[word]] = self._number(next(words, ""))
            else:
                self.fault("known word", f"{shown(word)} does not follow binary", word, ("sam", "version", *numbers))
        if self._needs("package", "binary"):
            self._begin("binary", "package", "binaries", record, ())

    def _inputs(self, rest: str) -> None:
        self._files(rest, "inputs")

    def _outputs(self, rest: str) -> None:
        self._files(rest, "outputs")

    def _files(self, rest: str, key: str) -> None:
        """Names, then what holds for all of them: from the first word on that says something of files."""
        before = len(self.faults.found)
        words = iter(self._words(rest))
        names: list[str] = []
        more: Record = {}
        kind = "in" if key == "inputs" else "out"
        for word in words:
            if word in _KEEPS:
                more["keep"] = word
            elif kind == "in" and word in _ACQUISITIONS:
                more["acquisition"] = word
            elif kind == "in" and word == "from":
                more["dataset"] = next(words, "")
            elif kind == "out" and word in ("store", "local"):
                more["store" if word == "store" else "forward"] = word == "store"
            elif word == "size":
                more["size_mb"] = self._number(next(words, ""))
            elif more:
                self.fault("order", f"Names of files stand before what holds for them, and {shown(word)} stands behind")
            else:
                names.append(word)
        if not names and len(self.faults.found) == before:
            self.fault("required", f"After {kind} stand names of files")
        if not self._needs("binary", "file"):
            return
        path, binary = self.open["binary"]
        listed: list[Record] = binary.setdefault(key, [])
        for name in names:
            self.lines[f"{path}.{key}[{len(listed)}]"] = self.at
            listed.append({"name": name, **more})
