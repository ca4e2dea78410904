"""Certificates of clients: a proxy in front of the site checks them and says their DN in a header.

The header counts from the proxies' own addresses only, so the proxy must overwrite what a client puts there.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from jedisite.identity.people import LONGEST_SUBJECT, known_user
from jedisite.models import ForeignIdentity

OF_PROXY = re.compile(r"(/CN=(\d+|proxy|limited proxy))+$")
"""What a grid proxy adds to the DN of the certificate that it was made from."""


def user_of(request: HttpRequest) -> User | None:
    """The user whose certificate a trusted proxy has seen; None without one. Raises AuthenticationFailed.

    A browser sends a certificate with whatever a page asks of it, as it does with cookies; so requests of browsers are
    not believed: they come with an Origin that is an address or null, or with a Sec-Fetch-Site header.
    """
    dn = request.META.get("HTTP_" + settings.JEDI_X509_HEADER.upper().replace("-", "_"), "")
    if not dn or len(dn) > LONGEST_SUBJECT or "\x00" in dn or not _comes_from_proxy(request):
        return None
    origin = request.META.get("HTTP_ORIGIN", "")
    if "HTTP_SEC_FETCH_SITE" in request.META or "://" in origin or origin == "null":
        return None
    return known_user(ForeignIdentity.X509, dn) or known_user(ForeignIdentity.X509, OF_PROXY.sub("", dn))


def _comes_from_proxy(request: HttpRequest) -> bool:
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in settings.JEDI_X509_PROXIES)
