"""Calls of the kernel that payloads behind walls do not get: a filter for seccomp, which bubblewrap installs. Pure.

Sockets of the family VSOCK lead to the machine on which this virtual one runs, and belong to no network namespace. Whoever may
use io_uring can open sockets without the call that is filtered.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

AF_VSOCK: Final = 40
SOCKET_OF_SOCKETCALL: Final = 1
IO_URING_SETUP: Final = 425
"""The same on all machines."""
NO_SUCH_CALL, NO_SUCH_FAMILY = 38, 97
NR, ARCH, FIRST_ARGUMENT = 0, 4, 16
LOAD, AND, IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000

Step = tuple[int, int, int, int]
"""Code, steps to pass over if true and if false, operand."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to call the kernel. `mask` takes marks of the number away; `socketcall` is the one call for all of sockets."""

    arch: int
    socket: int
    mask: int = 0xFFFF_FFFF
    socketcall: int | None = None


X86_64: Final = Kind(0xC000_003E, 41, mask=0xBFFF_FFFF)
"""Calls of the x32 kind are the same numbers with a mark."""
I386: Final = Kind(0x4000_0003, 359, socketcall=102)
AARCH64: Final = Kind(0xC000_00B7, 198)
ARM: Final = Kind(0x4000_0028, 281)
KINDS: Final = {"x86_64": (X86_64, I386), "aarch64": (AARCH64, ARM)}


def program(machine: str) -> bytes:
    """The filter for a machine, as the kernel takes it; empty for one that is not known."""
    kinds = KINDS.get(machine, ())
    if not kinds:
        return b""
    steps: list[Step] = []
    for kind in kinds:
        block = _block(kind)
        steps += [(LOAD, 0, 0, ARCH), (IF_EQUAL, 0, len(block), kind.arch), *block]
    steps.append((RETURN, 0, 0, REFUSE | NO_SUCH_CALL))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _block(kind: Kind) -> Sequence[Step]:
    steps: list[Step] = [
        (LOAD, 0, 0, NR),
        (AND, 0, 0, kind.mask),
        (IF_EQUAL, 0, 1, IO_URING_SETUP),
        (RETURN, 0, 0, REFUSE | NO_SUCH_CALL),
    ]
    if kind.socketcall is not None:
        # Its arguments lie in memory, which a filter does not see. C libraries then use the call `socket`.
        steps += [
            (IF_EQUAL, 0, 4, kind.socketcall),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (IF_EQUAL, 0, 1, SOCKET_OF_SOCKETCALL),
            (RETURN, 0, 0, REFUSE | NO_SUCH_CALL),
            (RETURN, 0, 0, ALLOW),
        ]
    return [
        *steps,
        (IF_EQUAL, 0, 3, kind.socket),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (IF_EQUAL, 0, 1, AF_VSOCK),
        (RETURN, 0, 0, REFUSE | NO_SUCH_FAMILY),
        (RETURN, 0, 0, ALLOW),
    ]
