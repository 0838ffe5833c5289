"""Where Gemini is and who asks: key, base URL and API version out of the environment.

Belongs here: the variables that google-genai reads, read by its rules, so that the calls that go
past the SDK reach the same place under the same account. Does not belong here: any call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import CredentialsMissing

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com"
DEFAULT_VERSION = "v1"
"""What google-genai 3.x calls without further settings."""

KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""The first one that is set counts, as in the SDK."""

BASE_URL_VARIABLE = "GOOGLE_GEMINI_BASE_URL"
VERSION_VARIABLE = "GOOGLE_GENAI_API_VERSION"


@dataclass(frozen=True)
class Account:
    """One key at one place.

    Attributes:
        base_url: without a version and without a closing slash.
        version: the first part of every path.
        key: secret; kept out of the text form.
    """

    base_url: str
    version: str
    key: str = field(repr=False)

    def url(self, name: str, action: str = "") -> str:
        """The address of a resource (`batches/x`, `models/y`), with `:action` behind it."""
        end = f":{action}" if action else ""
        return f"{self.base_url}/{self.version}/{quote(name, safe='/')}{end}"

    @property
    def headers(self) -> dict[str, str]:
        """What every call carries."""
        return {"x-goog-api-key": self.key}

    def text(self) -> str:
        """What the credentials identify, as text that must be digested before it is kept."""
        digest = hashlib.sha256(self.key.encode()).hexdigest()
        return f"{PROVIDER} at {self.base_url}, key SHA-256 {digest}"


def account_of(environment: Mapping[str, str]) -> Account:
    """The account that the environment names.

    Raises:
        CredentialsMissing: no usable key, or a base URL that is none.
    """
    keys = [environment.get(name, "").strip() for name in KEY_VARIABLES]
    key = next(filter(None, keys), "")
    if not key:
        raise CredentialsMissing(PROVIDER, "GEMINI_API_KEY (or GOOGLE_API_KEY)")
    if not key.isascii() or not key.isprintable():
        raise CredentialsMissing(PROVIDER, "a key of printable ASCII characters in GEMINI_API_KEY")
    base_url = (environment.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL).rstrip("/")
    if not _is_web_address(base_url):
        raise CredentialsMissing(PROVIDER, f"an http or https address in {BASE_URL_VARIABLE}")
    version = environment.get(VERSION_VARIABLE) or DEFAULT_VERSION
    return Account(base_url, "v1beta" if version == "beta" else version, key)


def model_name(model: str) -> str:
    """The resource name of a model: `models/` goes before a bare name."""
    return model if "/" in model else f"models/{model}"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
