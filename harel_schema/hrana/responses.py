"""What an HTTP response that is no result means, as an error with one clean line."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

import orjson

from harel_schema import errors as e
from harel_schema.hrana.decode import decode_error
from harel_schema.hrana.faults import from_server, one_line
from harel_schema.target import AUTH_REMEDY

# Texts of failures that the server reports with an HTTP status and no code.
_CODES_BY_TEXT: Final = {
    "SQL string could not be parsed": "SQL_PARSE_ERROR",
    "SQL string does not contain any statement": "SQL_NO_STATEMENT",
    "SQL string contains more than one statement": "SQL_MANY_STATEMENTS",
    "Arguments do not match SQL parameters": "ARGS_INVALID",
}

_NO_LIBSQL: Final = "check that the URL is a libSQL server's"
_REMEDIES: Final[dict[int, str | None]] = {
    HTTPStatus.BAD_REQUEST: None,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "send fewer rows in a request",
    HTTPStatus.TOO_MANY_REQUESTS: "try again later",
    # A server that cannot POST at all says so with a 5xx.
    HTTPStatus.NOT_IMPLEMENTED: _NO_LIBSQL,
}

_EXCERPT_CHARS: Final = 200
_PAGE: Final = re.compile(r"<(?:!doctype|html)\b", re.IGNORECASE)
_TAG: Final = re.compile(
    r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE
)

_AUTH: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

_UNKNOWN_BATON: Final = "Received an invalid baton"
_BATON_TEXTS: Final = (
    "Received a baton that has already been used",
    "Stream for this baton was closed",
)


def from_response(status: int, body: bytes, *, where: str, token: str | None = None) -> e.Error:
    """Return the error for an HTTP response that is no result (not raised).

    `where` names the server for the message. `token` is blotted out of what the body quotes.
    """
    text, code = _read_body(body)
    if token:
        text = text.replace(token, "***")
    if _PAGE.search(text):
        text = _TAG.sub(" ", text)
    text = one_line(text, _EXCERPT_CHARS)
    said = f": {text}" if text else ""
    if status in _AUTH:
        return _auth_error(status, said, code, where=where, token=token)
    if code is not None:
        return from_server(text, code)
    known = _from_text(text)
    if known is not None:
        return known
    return e.ServerError(
        f"{where} answered HTTP {status}{said}", status=status, remedy=_status_remedy(status, text)
    )


def _auth_error(
    status: int, said: str, code: str | None, *, where: str, token: str | None
) -> e.AuthError:
    if token is None:
        what = f"{where} asks for a token (HTTP {status}){said}"
    elif status == HTTPStatus.FORBIDDEN:
        what = f"the token does not allow this on {where} (HTTP {status}){said}"
    else:
        what = f"the token was refused by {where} (HTTP {status}){said}"
    return e.AuthError(what, code=code, remedy=AUTH_REMEDY)


def _read_body(body: bytes) -> tuple[str, str | None]:
    """Return message and code of a JSON, Protobuf or plain text error body."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if isinstance(content, dict):
        message = content.get("message") or content.get("error") or ""
        code = content.get("code")
        return str(message), str(code) if code else None
    return _read_protobuf(body) or (body.decode("utf-8", "replace"), None)


def _read_protobuf(body: bytes) -> tuple[str, str | None] | None:
    try:
        error = decode_error(body)
    except e.Error:
        return None
    return error if error[1] else None


def _from_text(text: str) -> e.Error | None:
    if text == _UNKNOWN_BATON:
        return e.TransactionLost(
            "the server does not know the stream's baton: it was restarted, or a load balancer "
            "sent the request to another server than the one before",
            remedy="run the transaction again; behind a balancer start sqld with --http-self-url",
        )
    if text in _BATON_TEXTS:
        return e.TransactionLost(text, remedy="run the transaction again on a new stream")
    if "invalid utf-8 sequence" in text:
        return e.OperationalError(
            f"a text value is not UTF-8: {text}", remedy="read it with CAST(column AS BLOB)"
        )
    for part, code in _CODES_BY_TEXT.items():
        if part in text:
            return from_server(text.replace("`", ""), code)
    return None


def _status_remedy(status: int, text: str) -> str | None:
    if status == HTTPStatus.NOT_FOUND and "Namespace" in text:
        return "create the namespace, or correct the host name"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _REMEDIES:
        return "try again later, and look into the server's log"
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return "redirects are not followed: use the final URL"
    return _REMEDIES.get(status, _NO_LIBSQL)
