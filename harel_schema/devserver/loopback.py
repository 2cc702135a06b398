"""Ports of this machine, and the servers that listen on them; standard library only."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket

__all__ = ["HOST", "free_ports", "healthy", "request"]

HOST = "127.0.0.1"


def free_ports(names: list[str]) -> dict[str, int]:
    """Choose a loopback port a name; all are held until the last is chosen, so they differ."""
    with contextlib.ExitStack() as held:
        sockets = {name: held.enter_context(socket.socket()) for name in names}
        for sock in sockets.values():
            sock.bind((HOST, 0))
        return {name: sock.getsockname()[1] for name, sock in sockets.items()}


def healthy(port: int) -> bool:
    """Tell whether a server on `port` answers ``/health``."""
    try:
        return request(port, "GET", "/health")[0] == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False


def request(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    """Send one request, `body` as JSON; return the status and the body of the answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    with contextlib.closing(connection):
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
