"""Switches garbage collection off while a process starts. Imports no Django.

Nearly all that is imported stays until the process ends. Python would look through it again and again, which took a sixth of
the start of every command, and afterwards whenever it looks through everything.
"""

from __future__ import annotations

import gc


def put_off() -> None:
    """Look for none until `look_again`; for a program that begins."""
    gc.disable()


def look_again() -> None:
    """Begin to look, and leave out what is here now; nothing happens where it was not put off."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
