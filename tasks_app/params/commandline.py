"""What in the command line of a task is allowed, and is probably not what was meant: sentences for its submitter. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from jedisite.vocabulary.words import nearest, sentence
from tasks_app.params.placeholders import is_ours
from tasks_app.params.rules import streams_of, values_of
from tasks_app.params.schema import TaskParams
from tasks_app.params.shellwords import words_of

QUOTED: Final = {"run_command": "-p", "event_command": "-p", "athena_command": "-j"}
"""Transforms of the site that put files in the place of %IN, with the option that brings the command, URL-quoted."""
MOST_TOLD: Final = 5
MOST_NAMES: Final = 20
"""Of the shell, for which a near one is looked for: that takes a millisecond each."""
LONGEST: Final = 200_000
"""Characters of a command line that is split; on longer ones less is said."""
SHORTEST: Final = 3
"""Letters of a name that may be a misspelling: shells count with names such as i and n."""
_FILLED: Final = re.compile(r"\$\{[^{}]*\}|\$(?:JEDITASKID|JOBSETID|PANDAID)\b")
_NAMED: Final = re.compile(r"\$\{(\w+)([^{}$\s]*\})?")
_SET: Final = re.compile(r"(?<![\w{$])(?:(\w+)=|for (\w+) in\b|(?<!-)read (?:-\w+ )*(\w+)\b)")
"""`read` begins where no option does: else texts of `-read -read` would take a time as the square of their length."""
FILES: Final = re.compile(r"(?<![\w%])%IN\b")
_NEAR_FILES: Final = re.compile(r"(?<![\w%])%(?:in|In|IN[A-Za-z_]\w*)\b")
_NAMED_WHOLE: Final = re.compile(r"(?<!\\)\$\{(\w+)\}")
_OF_RANGES: Final = re.compile(r"(?<!\\)\$\{?((?:FIRST|LAST)_EVENT)\b")
_STREAMS: Final = re.compile(r"['\"](\w+)['\"]\s*:")


def remarks(params: TaskParams, text: str, transform: str, *, of_ranges: bool = False) -> list[str]:
    """Sentences on a command line with its placeholders, for jobs with that transform, which take ranges of events or not."""
    said = _left_to_the_shell(text, streams_of(params) | values_of(params))
    if len(text) > LONGEST:
        return said
    try:
        words = words_of(_FILLED.sub("0", text))
    except ValueError as exc:
        why = f"the command line of its jobs cannot be split into words, {str(exc).lower()}"
        return [*said, sentence(f"{why}: each job will fail")]
    name = transform.rpartition("/")[2]
    return [*said, *_on_command(words, QUOTED[name], name, of_ranges=of_ranges)] if name in QUOTED else said


def _left_to_the_shell(text: str, known: Collection[str]) -> list[str]:
    said, others = dict[str, None](), dict[str, None]()
    for found in _NAMED.finditer(text):
        name, closed = found[1], found[2]
        if name not in known and not is_ours(name):
            others.setdefault(name)
        elif closed is None:
            said.setdefault(f"${{{name} is left to the shell, because the text after it does not form a placeholder.")
    for name in list(others)[:MOST_NAMES]:
        if (meant := _meant(name, known)) and not _is_set(name, text):
            said.setdefault(f"${{{name}}} is left to the shell; did you mean ${{{meant}}}?")
    return list(said)[:MOST_TOLD]


def _meant(name: str, known: Collection[str]) -> str:
    """The placeholder that was probably meant: another case of its letters, or one letter more or less, or two in error."""
    near = nearest(name, known)
    alike = len(name) >= SHORTEST and abs(len(near) - len(name)) <= 1 and name[0].lower() == near[:1].lower()
    return near if near.lower() == name.lower() or alike else ""


def _is_set(name: str, text: str) -> bool:
    """Whether the text itself gives that variable of the shell a value."""
    return any(name in names for names in _SET.findall(text))


def _on_command(words: Sequence[str], quoted: str, transform: str, *, of_ranges: bool) -> Iterator[str]:
    """What may be wrong with the command itself, in which %IN and the like stand for files."""
    end = words.index("--") if "--" in words else len(words)
    options = list(pairwise([*words[:end], ""]))
    command = unquote(dict(options).get(quoted, "")) or " ".join(words[end + 1 :])
    if not command.strip():
        yield f"The command line has no command, neither with {quoted} nor after --: each job will fail."
        return
    given = dict(options).get(quoted, "")
    for name in dict.fromkeys(_NAMED_WHOLE.findall(unquote(given))) if given else ():
        # What is URL-quoted is no placeholder when jobs are made.
        if is_ours(name) and not _is_set(name, command):
            yield f"Nothing fills ${{{name}}} in the command of {quoted}: the shell has no such variable, and puts nothing there."
    if transform == "run_command" and not of_ranges:
        for name in dict.fromkeys(_OF_RANGES.findall(command)):
            if not _is_set(name, command):
                yield f"${name} is empty: only jobs of event service have it, which nEventsPerWorker asks for."
    has_files = any(word.startswith(("-i", "--inMap")) for word, _ in options)
    if FILES.search(command) and not has_files:
        yield 'Nothing replaces %IN in the command: put -i "${IN/T}" into the command line, with an item that makes IN.'
    streams = {name for word, value in options if word == "--inMap" for name in _STREAMS.findall(value)}
    for near in dict.fromkeys(_NEAR_FILES.findall(command) if has_files else ()):
        if near.removeprefix("%") not in streams:
            yield f"Nothing replaces {near} in the command; did you mean %IN?"
