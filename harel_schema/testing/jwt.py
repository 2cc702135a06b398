"""Tokens for a server that asks for them; needs the package ``cryptography``."""

from __future__ import annotations

import base64
import json
import time

__all__ = ["JwtKey"]


class JwtKey:
    """A new Ed25519 key pair that signs the JWTs of a test.

    `public` is what ``sqld_server(auth_key=…)`` takes: the key's bytes in URL-safe base64.
    """

    def __init__(self) -> None:
        try:
            # Here, so that a user without the package can still import harel_schema.testing.
            from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
        except ModuleNotFoundError as exc:
            raise ImportError("JwtKey needs cryptography; run `pip install cryptography`") from exc
        self._private = ed25519.Ed25519PrivateKey.generate()
        self.public = _encode(self._private.public_key().public_bytes_raw())

    def token(self, *, read_only: bool = False, expires_in: float = 3600) -> str:
        """Return a signed token; `expires_in` seconds, negative for one that has expired."""
        now = int(time.time())
        claims: dict[str, object] = {"iat": now, "exp": int(now + expires_in)}
        if read_only:
            claims["a"] = "ro"
        header = {"alg": "EdDSA", "typ": "JWT"}
        signed = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{_encode(self._private.sign(signed.encode()))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
