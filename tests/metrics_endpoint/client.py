"""What asks the endpoint."""
from __future__ import annotations

import socket
import urllib.request
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str = "/metrics", host: str = "127.0.0.1", seconds: float = 10.0) -> Any:
    """The answer; urllib.error.HTTPError for another status, OSError where nobody listens."""
    return urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=seconds)


def raw(port: int, request: bytes) -> bytes:
    """All that comes back for some bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection:
        connection.sendall(request)
        answer = b""
        while True:
            more = connection.recv(65536)
            if not more:
                return answer
            answer += more


def is_closed(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection within so many seconds."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except OSError:   # still open
        return False
