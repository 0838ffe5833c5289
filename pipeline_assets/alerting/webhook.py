"""The webhook: one POST of JSON, signed where there is a secret.

Belongs here: the request and what counts as told. Does not belong here: which addresses are
allowed (`resources/settings.py`) and the body's form (`message.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass

from pydantic import SecretStr

from pipeline_assets.alerting.channels import TIMEOUT_SECONDS, ChannelFailed
from pipeline_assets.alerting.message import Digest, json_body
from resources.clock import is_loopback

SIGNATURE_HEADER = "X-Tallybook-Signature"


@dataclass(frozen=True)
class WebhookChannel:
    """Posts to one address.

    Attributes:
        url: the address; often a secret itself, so it is never shown.
        secret: the key of the signature; None for no signature.
        timeout: seconds for each step of the conversation.
    """

    url: SecretStr
    secret: SecretStr | None = None
    timeout: float = TIMEOUT_SECONDS
    name: str = "webhook"

    def send(self, digest: Digest) -> str | None:
        """Post the digest; any answer of the 200s means that it was told.

        Raises:
            ChannelFailed: no such answer.
        """
        import httpx2

        url = self.url.get_secret_value()
        body = json.dumps(json_body(digest), ensure_ascii=False, sort_keys=True).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "tallybook"}
        if self.secret is not None:
            headers[SIGNATURE_HEADER] = signature(self.secret, body)
        try:
            with (
                # A proxy of the environment cannot reach this machine's own loopback.
                httpx2.Client(
                    timeout=self.timeout, follow_redirects=False, trust_env=not is_loopback(url)
                ) as client,
                # Streamed, so that the answer's body is never read: its head says enough.
                client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
        except httpx2.TimeoutException:
            raise ChannelFailed("it did not answer in time") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise ChannelFailed(f"it could not be reached ({type(error).__name__})") from None
        if 300 <= status < 400:
            raise ChannelFailed(f"it answered {status}, a redirect, which is not followed")
        if not 200 <= status < 300:
            raise ChannelFailed(f"it answered {status}")
        return None


def signature(secret: SecretStr, body: bytes) -> str:
    """`sha256=` and the HMAC-SHA256 of the body's exact bytes, in hexadecimal digits."""
    key = secret.get_secret_value().encode()
    return f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"
