"""What a task that asks for luminosity blocks is told of files that have none. Pure."""

from __future__ import annotations

from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.params.split_codes import CODES
from tasks_app.params.splitrule import SplitRule

OF_BLOCKS: Final = ("OL", "RP", "RL")


def asks_for_blocks(rule: SplitRule) -> list[str]:
    """Names of the parameters by which a task asks for blocks."""
    return [CODES[code].meaning for code in OF_BLOCKS if rule.flag(code)]


def block_warning(asked: list[str], files: int, without: int) -> str:
    """`none of the 4 input files has a luminosity block: respectLB has no effect`; "" where all have one.

    >>> block_warning(["orderByLB", "respectLB"], 6, 2)
    '2 of 6 input files have no luminosity block: orderByLB, respectLB take them as one block'
    """
    if not asked or not without:
        return ""
    names = ", ".join(asked)
    if without < files:
        whose = f"{without} of {plural(files, 'input file')} {'has' if without == 1 else 'have'} no luminosity block"
        return (
            f"{whose}: {names} {'takes' if len(asked) == 1 else 'take'} {'it' if without == 1 else 'them'} as one block"
        )
    whose = "its only input file has no" if files == 1 else f"none of the {files} input files has a"
    return f"{whose} luminosity block: {names} {'has' if len(asked) == 1 else 'have'} no effect"
