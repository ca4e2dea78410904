"""A pytest plug-in: the tests reach nothing but this machine."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

_connect = socket.socket.connect


def _guarded(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        host = address[0]
        try:
            local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = False
        if not local:
            raise PermissionError(f"a test tried to reach {host}; only loopback is allowed")
    _connect(self, address)


def pytest_configure(config: pytest.Config) -> None:
    socket.socket.connect = _guarded  # type: ignore[method-assign]


def pytest_unconfigure(config: pytest.Config) -> None:
    socket.socket.connect = _connect  # type: ignore[method-assign]
