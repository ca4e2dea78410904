"""The message bus: where messages of the outbox go. The protocol, and its local twin inside the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Message(NamedTuple):
    """One message for a bus. Consumers know by `message_id` what they have had already."""

    position: int
    message_id: UUID
    topic: str
    kind: str
    payload: Mapping[str, Any]
    created: datetime


class BusError(RuntimeError):
    """The bus did not take the messages; they are given to it again later. The sentence is shown to operators."""


class MessageBus(Protocol):
    """Delivers messages at least once and in order: a repetition has the same id."""

    name: str

    def publish(self, messages: Sequence[Message]) -> None:
        """Hand over messages in their order, all or none. Raises BusError."""


class InDatabase:
    """The bus of an installation without a broker: consumers read the table, through the API's feed."""

    name = "in the database"

    def publish(self, messages: Sequence[Message]) -> None:
        """Nothing is to be carried anywhere."""


_bus: MessageBus = InDatabase()


def message_bus() -> MessageBus:
    """The bus of this installation."""
    return _bus
