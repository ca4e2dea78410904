"""Sentences for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, all that begin a new line, and those that turn the direction of what follows."""
NOT_ONE_LINE = "contains a line feed or another control character"
"""What is said of a name that is not `is_one_line`."""
_NUMBER = re.compile("[0-9]+")
LONGEST_MEANT = 128
"""Characters of a name for which a near one is looked for: that takes as long as both are."""
MOST_LISTED = 60
"""Known names that a refusal lists."""
ENDS = (".", "!", "?", "…")
APART_FROM = 10_000


def sentence(said: object) -> str:
    """The text of an exception, or a text, as a sentence: with a capital letter and one full stop.

    >>> sentence("it waits"), sentence("It waits.")
    ('It waits.', 'It waits.')
    """
    text = str(said).strip()
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith(ENDS) else ".")


def thousands(number: float) -> str:
    """A number in a sentence: from five digits on with its thousands apart, by narrow spaces that do not break."""
    return grouped(number) if abs(number) >= APART_FROM else f"{number}"


def grouped(number: float) -> str:
    """1234567 -> "1 234 567", also of fewer digits: in tables, where numbers stand below one another."""
    return f"{number:,}".replace(",", "\u202f")


def plural(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 job", "12 jobs"."""
    return f"{thousands(number)} {one if number == 1 else many or one + 's'}"


def some(names: Iterable[str], most: int = 5) -> str:
    """The first of some names: "a, b and 3 more", with `most` of 2."""
    given = list(names)
    return ", ".join(given[:most]) + (f" and {len(given) - most} more" if len(given) > most else "")


def filled(template: str, values: Sequence[object]) -> str:
    """A template with its values; `{:job is|jobs are}` stands for a number with what belongs to it, of one and of several.

    >>> filled("{:job is|jobs are} queued, {} may be", (1, 20)), filled("{:job is|jobs are} queued, {} may be", (2, 20))
    ('1 job is queued, 20 may be', '2 jobs are queued, 20 may be')
    """
    return template.format(*map(_Counted, values) if "|" in template else values)


class _Counted:
    """A value in a template that may be a number of things there."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        one, several, many = spec.partition("|")
        if not several:
            return format(self.value, spec)
        number = thousands(self.value) if isinstance(self.value, int | float) else self.value
        return f"{number} {one if self.value == 1 else many}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, whatever the case of its letters; "" when none is near.

    >>> nearest("cerm", ["CERN", "BNL"])
    'CERN'
    """
    if len(name) > LONGEST_MEANT:
        return ""
    by_lower = {one.lower(): one for one in sorted(known)}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else ""


def differ_little(name: str, other: str) -> bool:
    """Whether two dotted names are near without the fields that both begin with: most of a user's names have two of them.

    >>> differ_little("user.ada.nope", "user.ada.hope"), differ_little("user.ada.nope", "user.ada.ignp/")
    (True, False)
    """
    fields, others = name.rstrip("/").split("."), other.rstrip("/").split(".")
    pairs = list(zip(fields, others, strict=False))
    same = next((at for at, (one, two) in enumerate(pairs) if one != two), len(pairs))
    one, two = ".".join(fields[same:]), ".".join(others[same:])
    return one.startswith(two) or two.startswith(one) or bool(nearest(one, [two]))


def are_numbered_alike(one: str, other: str) -> bool:
    """Whether two names differ in the values of their numbers only: then neither is a misspelling of the other.

    >>> are_numbered_alike("m99.txt", "m9.txt"), are_numbered_alike("m09.txt", "m9.txt")
    (True, False)
    """
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return False
    return [number.lstrip("0") for number in _NUMBER.findall(one)] != [n.lstrip("0") for n in _NUMBER.findall(other)]


def rather(said: str, name: str, known: Iterable[str], most: int = MOST_LISTED) -> str:
    """A refusal of a name, and what to write instead: the known name that is near, else those that there are.

    `said` is a sentence without its full stop. More than `most` known names are not listed.

    >>> rather("'statsu' is not a key", "statsu", ["status", "user"])
    "'statsu' is not a key. Did you mean status?"
    >>> rather("'x' is not a key", "x", ["status", "user"])
    "'x' is not a key; those are status, user."
    """
    listed = sorted(known)
    if near := nearest(name, listed):
        return f"{said}. Did you mean {near}?"
    return f"{said}; those are {', '.join(listed)}." if 0 < len(listed) <= most else f"{said}."


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters: cut between words, with an ellipsis where something is left out.

    >>> shortened("wait until the dataset is closed", 20)
    'wait until the …'
    """
    if len(text) <= longest:
        return text
    cut = text[: longest - 2]
    at_word = cut if text[longest - 2].isspace() else cut.rpartition(" ")[0]
    # A word that fills half of the place is cut: so that something is left of an address.
    return f"{at_word.rstrip()} …" if len(at_word) > longest // 2 else f"{text[: longest - 1]}…"


def on_one_line(text: str) -> str:
    """A text that somebody gives as a reason, without line feeds and other control characters; U+0000 is left to be refused.

    >>> on_one_line(" for the talk\\r\\nBcc: y ")
    'for the talk Bcc: y'
    """
    return re.sub(" +", " ", _CONTROL.sub(lambda found: found[0] if found[0] == "\0" else " ", text)).strip()


def is_one_line(text: str) -> bool:
    """Whether a name can stand in a heading, in the head of a mail or in a log: it has no control character in it."""
    return _CONTROL.search(text) is None
