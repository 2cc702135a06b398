"""What httpx raises, as our errors, and the settings that both clients share."""

from __future__ import annotations

import ssl
from typing import Final, TypedDict
from urllib.parse import urlsplit

import httpx

from harel_schema import errors as e
from harel_schema.hrana.flow import Failure, Reply

# sqld serves 128 connections at a time, to all of its clients.
_LIMITS: Final = httpx.Limits(
    max_connections=64,
    max_keepalive_connections=64,
    # A gateway closes an idle connection after a time of its own choice. Ours is shorter than
    # any in use, so that a request rarely meets a connection that is just being closed.
    keepalive_expiry=5.0,
)
_CONNECT_SECONDS: Final = 10.0
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Settings(TypedDict):
    """What both clients of httpx are made with."""

    timeout: httpx.Timeout
    limits: httpx.Limits
    trust_env: bool
    verify: ssl.SSLContext


def settings(url: str, timeout: float) -> Settings:
    """Return the settings for the server at `url` and a `timeout` in seconds.

    A connection is made, or not, sooner than a query ends. The environment is not asked for a
    proxy or a .netrc, which would see or replace the token, but for SSL_CERT_FILE. Raises
    `TargetError` for a host that cannot be looked up.
    """
    _check_host(url)
    # Without TLS there is no need to load certificates, which takes 30 ms.
    tls = url.startswith("https:")
    context = httpx.create_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return {
        "timeout": httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
        "limits": _LIMITS,
        "trust_env": False,
        "verify": context,
    }


def _check_host(url: str) -> None:
    """Refuse what httpx or the resolver would refuse in the middle of a request."""
    try:
        # A part that is empty or over 63 long, an address that is none, a broken IDN.
        httpx.URL(url).host.encode("idna")
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise e.TargetError(
            f"{urlsplit(url).hostname!r} is no name of a host", remedy="check the URL"
        ) from exc


def to_loopback(request: httpx.Request) -> None:
    """Send a request to ``NAME.localhost`` to this machine; its Host header keeps the name.

    RFC 6761 says so, and not every system's resolver does. sqld tells namespaces by that header.
    """
    if request.url.scheme == "http" and request.url.host.endswith(".localhost"):
        request.url = request.url.copy_with(host="127.0.0.1")


async def to_loopback_async(request: httpx.Request) -> None:
    """Do the same for an asynchronous client."""
    to_loopback(request)


class HeadWatch:
    """Learns from httpcore's trace whether the head of a request could be written.

    A kept-alive connection that the server has closed fails at the first write. Nothing of the
    request has left then, which is the one proof that it may be sent again. When only the body
    fails, the server may have it all: the request counts as sent.
    """

    def __init__(self) -> None:
        self.failed = False

    def __call__(self, event: str, _info: object) -> None:
        """Take an event of a synchronous transport."""
        if event.endswith("send_request_headers.failed"):
            self.failed = True

    async def asynchronous(self, event: str, info: object) -> None:
        """Take an event of an asynchronous transport."""
        self(event, info)


def failure(exc: httpx.RequestError, url: str, watch: HeadWatch) -> Failure:
    """Return the outcome of a request that got no whole response."""
    sent = not (isinstance(exc, _NEVER_SENT) or watch.failed)
    where = url.split("/v3-protobuf", maxsplit=1)[0]
    kind = e.RequestTimeout if isinstance(exc, httpx.TimeoutException) else e.ConnectionLost
    error = kind(_message(exc, where, sent=sent), sent=sent, remedy=_remedy(exc, sent=sent))
    error.__cause__ = exc
    return Failure(error)


def cut_off(exc: httpx.RequestError, where: str) -> e.ConnectionLost:
    """Return the error for a cursor whose response broke off (not raised)."""
    kind = e.RequestTimeout if isinstance(exc, httpx.TimeoutException) else e.ConnectionLost
    return kind(
        _message(exc, where, sent=True),
        sent=True,
        # sqld ends the response so when it meets a text that is not UTF-8.
        remedy="read again; where it breaks at the same row, read its text as CAST(… AS BLOB)",
    )


def is_read(response: httpx.Response) -> bool:
    """Tell whether enough of a response's body was read: of a refusal, all that was announced.

    sqld refuses a request before it has read it, and then closes the connection or not: what is
    sent through it next may be lost. httpx gives up a connection whose response was not read to
    its very end, and that comes after the last byte.
    """
    length = response.headers.get("content-length", "")
    announced = not response.is_success and length.isdecimal()
    return announced and response.num_bytes_downloaded >= int(length)


def reply(response: httpx.Response, body: bytes, *, stream: bool = False) -> Reply:
    """Return the outcome of a request that got a response."""
    if not stream:
        # A response and its stream hold each other, and with them the body of the request, until
        # the garbage collector comes by. It was read; a cycle of megabytes must not stay.
        response.stream = httpx.ByteStream(b"")
    return Reply(
        response.status_code,
        response.headers.get("content-type", ""),
        body,
        response if stream else None,
    )


def _message(exc: httpx.RequestError, where: str, *, sent: bool) -> str:
    reason = " ".join(str(exc).split()) or type(exc).__name__
    if isinstance(exc, httpx.TimeoutException):
        limits = exc.request.extensions["timeout"]
        seconds = limits["read"] if sent else limits["connect"]
        return f"{where} did not {'answer' if sent else 'accept a connection'} for {seconds:g} s"
    if "WRONG_VERSION_NUMBER" in reason:
        return f"{where} does not speak TLS"
    if not sent:
        return f"cannot connect to {where}: {reason}"
    return f"the connection to {where} broke before the answer was complete: {reason}"


def _remedy(exc: httpx.RequestError, *, sent: bool) -> str:
    if "WRONG_VERSION_NUMBER" in str(exc):
        return "name it by http://, or libsql://…?tls=0"
    if sent:
        return "it may have been applied: look before you send it again"
    return "check the URL, and that the server runs"
