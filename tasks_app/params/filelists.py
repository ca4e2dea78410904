"""How a list of file names is written in a command line."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

LONGEST = 255
UNFIT = frozenset("/,'\"`$%\\")
"""What separates names in a list, ends a quoted one, is read by a shell, or stands for another character in an address."""


def compact(names: Sequence[str]) -> str:
    """`head[1,2,4]tail` when the names differ in one number only, else a comma list.

    The numbers between the brackets are whole (`f._[000001,000002].root`), so that the text expands to the names.
    Names whose attempt suffixes (`.1`, `.2`) differ are listed in full for the same reason.
    """
    if len(names) < 2:
        return names[0] if names else ""
    first, last = min(names), max(names)
    head = _common_start(first, last)
    while head and first[head - 1].isdecimal():
        head -= 1
    end = head
    while end < len(first) and first[end].isdecimal():
        end += 1
    start, tail = first[:head], first[end:]
    cut = -len(tail) if tail else None
    middles = [name[head:cut] for name in names]
    numbers, listed = ",".join(middles), ",".join(names)
    rebuilt = start + f"{tail},{start}".join(middles) + tail
    if rebuilt != listed or "" in middles or not numbers.replace(",", "").isdecimal():
        return listed
    return f"{start}[{numbers}]{tail}"


def why_not_carried(name: str) -> str:
    """Why a file of this name cannot be an input: what is wrong, in words; empty when it can.

    Names stand in comma lists of the pilots' protocol, in quoted lists of command lines, and name a file in the work folder.
    """
    if name in ("", "NULL"):
        return "it names no file"
    if name.startswith("."):
        return "it begins with a dot"
    if not name.isprintable():
        return "it contains characters that cannot be printed"
    if bad := sorted(set(name) & UNFIT):
        return f"it has {' '.join(bad)} in it"
    return f"it is longer than {LONGEST} bytes" if len(name.encode()) > LONGEST else ""


def _common_start(first: str, last: str) -> int:
    """Length of what both begin with."""
    low, high = 0, min(len(first), len(last))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == last[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def comma_list(names: Sequence[str]) -> str:
    return ",".join(names)


def quoted_list(names: Sequence[str]) -> str:
    return ",".join([f"'{name}'" for name in names])


def blank_list(names: Sequence[str]) -> str:
    return " ".join(names)


def printed_list(names: Sequence[str]) -> str:
    """As Python prints a list; transforms of prun read it back."""
    return str(list(names))


def decoded_list(names: Sequence[str]) -> str:
    return ",".join([unquote(name) for name in names])


def handed_over(stream: str) -> str:
    """Name of the file in which the pilot hands the list over."""
    return f"tmpin_{stream}"
