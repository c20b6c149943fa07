"""Messages between the driver and a case's own process: a length, then JSON. Never pickle."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import Any

from impact_twin.procurement.model import JSON
from impact_twin.trials.codec import dumps

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_HEAD = struct.Struct(">I")


class WireError(Exception):
    """The other side sent what is no message."""


class Wire:
    """One end of a stream of messages. Sending is safe from several threads; one thread reads.

    Args:
        sock: A connected stream socket; closed by `close`.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, JSON]) -> None:
        """Send one message.

        Raises:
            OSError: the other side has gone, or does not read.
        """
        data = dumps(message).encode("ascii")
        with self._sending:
            self._sock.sendall(_HEAD.pack(len(data)) + data)

    def receive(self, deadline: float | None = None) -> Mapping[str, JSON] | None:
        """Return the next message; None when the other side has closed.

        Args:
            deadline: On the monotonic clock; None waits for ever.

        Raises:
            TimeoutError: the deadline is over.
            WireError: too large, or no JSON object.
            OSError: the connection broke.
        """
        head = self._exactly(_HEAD.size, deadline)
        if head is None:
            return None
        (length,) = _HEAD.unpack(head)
        if length > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {length} bytes; at most {MAX_MESSAGE_BYTES} are taken")
        data = self._exactly(length, deadline)
        if data is None:
            return None
        try:
            message: Any = json.loads(data)
        except (ValueError, RecursionError):
            raise WireError("a message that is not JSON") from None
        if not isinstance(message, dict):
            raise WireError("a message that is not an object")
        return message

    def hang_up(self) -> None:
        """Wake up whoever waits for a message, with what has already arrived."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def _exactly(self, length: int, deadline: float | None) -> bytes | None:
        parts = bytearray()
        while len(parts) < length:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._sock.settimeout(left)
            try:
                part = self._sock.recv(min(length - len(parts), 1 << 20))
            except ConnectionResetError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)
