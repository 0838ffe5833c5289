"""What the tests of every real SDK share."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_certificates_read() -> Iterator[None]:
    """Leave the certificates of this machine unread: each client reads them anew, 60 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
        yield
