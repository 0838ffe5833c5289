"""boto3 clients for Bedrock and S3, made from the environment, and whose account they use.

Belongs here: regions, endpoints, credentials, time-outs, and the question whether a model is
there. Does not belong here: jobs (`batch.py`) and answers (`online.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import Any

from resources.providers.bedrock.errors import PROVIDER, Trouble, for_reading, translated
from resources.providers.port import (
    CredentialsMissing,
    ModelUnavailable,
    ProviderError,
    ProviderOptions,
    SdkMissing,
)

ROLE_VARIABLE = "TALLYBOOK_BEDROCK_ROLE_ARN"
S3_VARIABLE = "TALLYBOOK_BEDROCK_S3_URI"
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
BEARER_VARIABLE = "AWS_BEARER_TOKEN_BEDROCK"
CONNECT_SECONDS = 20.0

_S3_URI = re.compile(r"s3://(?P<bucket>[a-z0-9][-.a-z0-9]{1,61}[a-z0-9])(?:/(?P<prefix>.*?))?/*")
_ACCOUNT_IN_ROLE = re.compile(r"arn:aws[^:]*:iam::(\d{12}):role/.+")
# The kinds of model that can be asked about; custom and provisioned ones are the owner's.
_ASKABLE_ARN = re.compile(r"arn:[^:]+:bedrock:[^:]*:[^:]*:(foundation-model|[a-z-]*inference-prof)")


class BadSetting(ProviderError):
    """A setting for Bedrock that is there and cannot be right."""

    def __init__(self, variable: str, found: str, expected: str) -> None:
        super().__init__(f"{variable} is {found!r}; expected {expected}.")


@dataclass(frozen=True)
class Location:
    """Where inputs and outputs lie.

    Attributes:
        bucket: the bucket's name.
        prefix: key prefix without slashes at its ends; may be empty.
    """

    bucket: str
    prefix: str

    def key(self, *parts: str) -> str:
        """Return the key of an object under the prefix."""
        return "/".join((self.prefix, *parts) if self.prefix else parts)

    def uri(self, *parts: str) -> str:
        """Return the `s3://` address of an object under the prefix."""
        return f"s3://{self.bucket}/{self.key(*parts)}"


def location_of(uri: str) -> Location:
    """Return a setting's bucket and prefix.

    Raises:
        BadSetting: it is not `s3://bucket` or `s3://bucket/prefix`.
    """
    found = _S3_URI.fullmatch(uri)
    if found is None:
        raise BadSetting(S3_VARIABLE, uri, "s3://bucket/prefix")
    return Location(found["bucket"], (found["prefix"] or "").strip("/"))


def split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and key of an `s3://` address of the provider's or ours.

    Raises:
        ValueError: it is no such address.
    """
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket or not key:
        raise ValueError(f"{uri!r} is no address of an S3 object: expected s3://bucket/key")
    return bucket, key


class Connection:
    """The environment's credentials and region, and the clients that use them.

    Args:
        options: time-out, role and place.
        pool: connections that a client keeps at most.

    Raises:
        SdkMissing: boto3 is not installed.
        CredentialsMissing: no credentials, or no region.
    """

    def __init__(self, options: ProviderOptions, pool: int) -> None:
        try:
            from boto3.session import Session
            from botocore.config import Config
        except ImportError:
            raise SdkMissing(PROVIDER, "bedrock") from None
        self._options = options
        self._session: Any = Session(region_name=_region_in_environment())
        self.region: str | None = self._session.region_name
        if self.region is None:
            raise CredentialsMissing(PROVIDER, " or ".join(REGION_VARIABLES))
        with translated(for_reading):
            self._credentials: Any = self._session.get_credentials()
        self._bearer = os.environ.get(BEARER_VARIABLE)
        # One try: repeating is the caller's decision, which counts tries and waits with jitter.
        self._config = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=min(CONNECT_SECONDS, options.timeout_seconds),
            read_timeout=options.timeout_seconds,
            max_pool_connections=pool,
        )

    def need_signing_keys(self) -> None:
        """Make sure that calls can be signed, which S3 always needs.

        Raises:
            CredentialsMissing: there are no credentials.
        """
        if self._credentials is None:
            raise CredentialsMissing(PROVIDER, "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY")

    def need_any_keys(self) -> None:
        """Make sure that Bedrock can be called: signed, or with its bearer token.

        Raises:
            CredentialsMissing: there is neither.
        """
        if not self._bearer:
            self.need_signing_keys()

    def client(self, service: str) -> Any:
        """Return a client of a service (`bedrock`, `bedrock-runtime`, `s3`)."""
        with translated(for_reading):
            return self._session.client(service, config=self._config)

    def account(self, base_url: str) -> str:
        """Return what the credentials identify; secrets only as digests.

        Temporary credentials have another key id every few hours. They are told by the account
        of the role that jobs run under, which can only be one of the caller's own account.
        """
        role = _ACCOUNT_IN_ROLE.fullmatch(self._options.bedrock_role_arn or "")
        parts = [base_url, f"region {self.region}", f"account {role[1] if role else 'unknown'}"]
        if self._bearer:
            parts.append(f"bearer {_digest(self._bearer)}")
        if self._credentials is not None:
            with translated(for_reading):
                keys = self._credentials.get_frozen_credentials()
            lasting = keys.token is None or role is None
            parts.append(f"key {_digest(keys.access_key)}" if lasting else "temporary key")
        return "\n".join(parts)


def check_model(control: Any, model: str) -> None:
    """Ask the control plane whether a model, or an inference profile, is there.

    Args:
        control: a client of `bedrock`.
        model: model id, profile id or ARN. A custom or provisioned model's ARN is not asked for.

    Raises:
        ModelUnavailable: the service knows neither a model nor a profile of this name.
    """
    if model.startswith("arn:") and not _ASKABLE_ARN.match(model):
        return
    questions = (
        lambda: control.get_foundation_model(modelIdentifier=model),
        lambda: control.get_inference_profile(inferenceProfileIdentifier=model),
    )
    for ask in questions:
        try:
            with translated(_for_model):
                ask()
        except _ModelUnknown:
            continue
        except _MayNotAsk:
            return  # no permission to ask proves nothing about the permission to use
        return
    raise ModelUnavailable(PROVIDER, model)


class _ModelUnknown(ProviderError):
    pass


class _MayNotAsk(ProviderError):
    pass


def _for_model(trouble: Trouble) -> ProviderError:
    if trouble.code in {"ResourceNotFoundException", "ValidationException"}:
        return _ModelUnknown()
    if trouble.code == "AccessDeniedException":
        return _MayNotAsk()
    return for_reading(trouble)


def _region_in_environment() -> str | None:
    # boto3 itself reads only the second; most other AWS tools set the first.
    return next((os.environ[name] for name in REGION_VARIABLES if os.environ.get(name)), None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
