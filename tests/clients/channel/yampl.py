"""Stands in for the native module of this name, over a Unix socket: PanDA's pilot and the payloads of its event jobs import it.

The socket lies in the folder that YAMPL_FOLDER names. Each message is a packet.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

LONGEST = 1 << 20
NOTHING = (-1, b"")


def _address(name: str) -> str:
    """The folder's path may be longer than an address can be."""
    above = os.open(os.environ["YAMPL_FOLDER"], os.O_RDONLY | os.O_DIRECTORY)
    return f"/proc/self/fd/{above}/{Path(name).name}"


class ServerSocket:
    def __init__(self, name: str, _context: str) -> None:
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.bind(_address(name))
        self._door.listen()
        self._door.setblocking(False)
        self._talkers: list[socket.socket] = []
        self._last: socket.socket | None = None

    def send_raw(self, message: bytes) -> None:
        """To whoever spoke last. That the payload has gone is no error: the pilot says a last word after its end."""
        if self._last is not None:
            with contextlib.suppress(OSError):
                self._last.send(message)

    def try_recv_raw(self) -> tuple[int, bytes]:
        with contextlib.suppress(BlockingIOError):
            talker, _ = self._door.accept()
            talker.setblocking(False)
            self._talkers.append(talker)
        for talker in list(self._talkers):
            with contextlib.suppress(BlockingIOError):
                message = talker.recv(LONGEST)
                if message:
                    self._last = talker
                    return len(message), message
                self._talkers.remove(talker)
        return NOTHING


class ClientSocket:
    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(_address(name))
        self._socket.setblocking(False)

    def send_raw(self, message: bytes) -> None:
        self._socket.send(message)

    def try_recv_raw(self) -> tuple[int, bytes]:
        try:
            message = self._socket.recv(LONGEST)
        except BlockingIOError:
            return NOTHING
        return len(message), message
