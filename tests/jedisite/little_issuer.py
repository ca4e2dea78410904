"""A little OIDC issuer on loopback, with keys made for the test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from jedisite.identity.oidc_settings import Provider

AUDIENCE = "https://panda.example"


@cache
def rsa_key(number: int = 0) -> Any:
    return rsa.generate_private_key(65537, 2048)


@cache
def ec_key(number: int = 0) -> Any:
    return ec.generate_private_key(ec.SECP256R1())


class LittleIssuer:
    """Serves a discovery document and a key set, and makes tokens. `asked` are the paths that were fetched."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys: dict[str, tuple[Any, str]] = {"one": (rsa_key(), "RS256")}
        self.discovery: dict[str, Any] = {}
        self.silent = False
        self.door, self.arrived = Event(), Event()
        """While it is closed (cleared), requests arrive and wait."""
        self.door.set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                issuer.arrived.set()
                issuer.door.wait(30)
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(500 if issuer.silent else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def document(self, path: str) -> Any:
        if path.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.discovery}
        kinds = {"RS256": jwt.algorithms.RSAAlgorithm, "ES256": jwt.algorithms.ECAlgorithm}
        return {
            "keys": [
                {**json.loads(kinds[alg].to_jwk(key.public_key())), "kid": kid, "use": "sig"}
                for kid, (key, alg) in self.keys.items()
            ]
        }

    def provider(self, **changes: Any) -> Provider:
        values = {"vo": "atlas", "issuer": self.url, "audiences": (AUDIENCE, "other"), "client_id": "panda", **changes}
        return Provider(**values)

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        values = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "subject of ada",
            "iat": now,
            "exp": now + 600,
            "preferred_username": "ada",
            "name": "Ada Lovelace",
            "groups": ["atlas/production", "/atlas/pilot", "cms/production"],
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def token(self, kid: str = "one", key: Any = None, algorithm: str | None = None, **changes: Any) -> str:
        known, alg = self.keys.get(kid, (rsa_key(), "RS256"))
        return jwt.encode(
            self.claims(**changes), key if key is not None else known, algorithm or alg, headers={"kid": kid}
        )


@contextmanager
def running() -> Iterator[LittleIssuer]:
    issuer = LittleIssuer()
    thread = Thread(target=issuer.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        issuer.server.shutdown()
        issuer.server.server_close()
        thread.join()
