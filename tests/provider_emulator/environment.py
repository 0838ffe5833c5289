"""The environment in which the real SDKs talk to the emulator.

Belongs here: variable names and planted keys. The keys are made up; tests look for them in logs,
errors and files, where no key may ever stand.
"""

from __future__ import annotations

import os

OPENAI_KEY = "sk-emulated-openai-5f1d8c07b2a94e63"
ANTHROPIC_KEY = "sk-ant-emulated-anthropic-91c4e7d05ab83f26"
GEMINI_KEY = "AIza-emulated-gemini-3e92b6d14c7f5a80"
AWS_KEY_ID = "AKIAEMULATED00000001"
AWS_SECRET = "emulated-aws-secret-7d20c95be8f14a36"
PLANTED_KEYS = (OPENAI_KEY, ANTHROPIC_KEY, GEMINI_KEY, AWS_KEY_ID, AWS_SECRET)

ROLE_ARN = "arn:aws:iam::123456789012:role/emulated-batch-role"
S3_URI = "s3://tallybook-emulated/batches"
REGION = "us-east-1"


def environment(base_url: str) -> dict[str, str]:
    """Return the variables that send every SDK, and Tallybook's clock, to an emulator."""
    return {
        "OPENAI_BASE_URL": f"{base_url}/openai/v1",
        "OPENAI_API_KEY": OPENAI_KEY,
        "ANTHROPIC_BASE_URL": f"{base_url}/anthropic",
        "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
        "GOOGLE_GEMINI_BASE_URL": f"{base_url}/gemini",
        "GEMINI_API_KEY": GEMINI_KEY,
        "AWS_ENDPOINT_URL_BEDROCK": f"{base_url}/bedrock",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"{base_url}/bedrock",
        "AWS_ENDPOINT_URL_S3": f"{base_url}/s3",
        "AWS_ACCESS_KEY_ID": AWS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        # Nothing of the machine's own AWS set-up is read, and no metadata service is asked.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "TALLYBOOK_BEDROCK_ROLE_ARN": ROLE_ARN,
        "TALLYBOOK_BEDROCK_S3_URI": S3_URI,
        "TALLYBOOK_CLOCK_URL": f"{base_url}/_control/clock",
        # A proxy of the machine must not see loopback traffic; some clients read either case.
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
