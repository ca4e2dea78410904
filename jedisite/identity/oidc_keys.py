"""Public keys of issuers: fetched from their discovery documents, kept, and fetched again when a new key turns up."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import jwt
import structlog

from jedisite.identity.oidc_settings import LOOPBACK, Provider, is_safe

log = structlog.get_logger(__name__)

KEPT_S = 3600.0
"""Seconds for which keys are used before they are fetched anew."""
STALE_S = 86_400.0
"""Seconds for which known keys still count while their issuer does not answer."""
PAUSE_S = 30.0
"""Seconds between two attempts to fetch keys, however many tokens name unknown ones."""
LIMIT_S = 5.0
"""Seconds that one fetch may take."""
MOST_BYTES = 1 << 20
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Signatures that count, by the type of the key. All of them need a private key that only the issuer has."""


class IssuerSilentError(Exception):
    """The keys of an issuer cannot be had; the text says why."""


class UnknownKeyError(Exception):
    """The issuer has no such key."""


class SigningKey:
    """A public key, and the algorithms that it may be used with."""

    def __init__(self, key: Any, algorithms: tuple[str, ...]) -> None:
        self.key = key
        self.algorithms = algorithms


def keys_of_document(document: Any) -> dict[str, SigningKey]:
    """The keys in a JWKS, by their id. What is no public key for signatures is left out. Raises ValueError."""
    rows = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(rows, list):
        raise ValueError("the key set has no list of keys")
    found = {}
    for row in rows:
        if (
            not isinstance(row, Mapping)
            or row.get("use", "sig") != "sig"
            or row.get("kty") not in ALGORITHMS
            or "d" in row
        ):
            continue
        allowed = tuple(a for a in ALGORITHMS[row["kty"]] if row.get("alg", a) == a)
        try:
            found[str(row.get("kid", ""))] = SigningKey(jwt.PyJWK(dict(row)).key, allowed)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError) as exc:
            log.warning("oidc.key_skipped", why=str(exc)[:200])
    return found


class Keys:
    """Keys of one issuer in this process. Several threads may ask; one of them fetches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, SigningKey] = {}
        self._fetched = self._tried = float("-inf")
        self._fault = ""

    def get(self, provider: Provider, kid: str) -> SigningKey:
        """The key of that id. Raises UnknownKeyError, IssuerSilentError. May ask the network: not for transactions."""
        now = time.monotonic()
        if now - self._fetched < KEPT_S and kid in self._keys:
            return self._keys[kid]
        # Only the first keys are waited for: else a slow issuer and made-up key ids would hold all threads of the process.
        if not self._lock.acquire(blocking=not self._keys):
            if now - self._fetched < STALE_S and kid in self._keys:
                return self._keys[kid]
            raise IssuerSilentError("its keys are being fetched")
        try:
            now = time.monotonic()
            wanted = kid not in self._keys or now - self._fetched >= KEPT_S
            if wanted and now - self._tried >= PAUSE_S:
                self._fetch(provider)
            if now - self._fetched < STALE_S and kid in self._keys:
                return self._keys[kid]
            if self._fault:
                raise IssuerSilentError(self._fault)
        finally:
            self._lock.release()
        raise UnknownKeyError(kid)

    def _fetch(self, provider: Provider) -> None:
        self._tried = time.monotonic()
        try:
            self._keys = keys_of_document(fetch_json(_address_of_keys(provider)))
            self._fetched, self._fault = time.monotonic(), ""
        except (OSError, ValueError, HTTPException) as exc:
            self._fault = str(exc)[:200]
            if isinstance(exc, HTTPError):
                exc.close()
            log.warning("oidc.issuer_silent", issuer=provider.issuer, why=self._fault)


def _address_of_keys(provider: Provider) -> str:
    found = fetch_json(provider.discovery)
    if not isinstance(found, Mapping) or found.get("issuer") != provider.issuer:
        raise ValueError("its discovery document belongs to another issuer")
    address = found.get("jwks_uri")
    if not isinstance(address, str) or not is_safe(address):
        raise ValueError("its discovery document names no safe address of keys")
    return address


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect to an address from which keys may not come."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not is_safe(newurl):
            raise OSError("it redirects to an address that is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch_json(url: str) -> Any:
    """A JSON document from the network, within LIMIT_S. Raises OSError and ValueError with a sentence."""
    deadline = time.monotonic() + LIMIT_S
    handlers: list[Any] = [_SafeRedirects()]
    if urlsplit(url).hostname in LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    body = b""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    with urllib.request.build_opener(*handlers).open(request, timeout=LIMIT_S) as answer:
        while piece := answer.read1(1 << 16):
            body += piece
            if len(body) > MOST_BYTES:
                raise ValueError(f"{url} is longer than {MOST_BYTES} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} took longer than {LIMIT_S:.0f} s")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{url} is not JSON") from exc


_of_issuer: dict[str, Keys] = {}


def key_of(provider: Provider, kid: str) -> SigningKey:
    """The key of a provider. Raises UnknownKeyError, IssuerSilentError."""
    return _of_issuer.setdefault(provider.issuer, Keys()).get(provider, kid)


def forget() -> None:
    """Forget all keys."""
    _of_issuer.clear()
