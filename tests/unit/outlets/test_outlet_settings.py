"""The settings of the outlet: which addresses are allowed, and what is shown of them."""

from __future__ import annotations

import pytest

from pipeline_assets.outlets.http import WebhookOutlet, configured_outlet
from resources.settings import SettingsError, load_settings

SECRET = "open-sesame"


@pytest.mark.parametrize(
    "url",
    [
        f"https://example.com/{SECRET}",
        f"http://127.0.0.1:8000/{SECRET}",
        f"http://localhost/{SECRET}",
        f"http://[::1]:8000/{SECRET}",
    ],
)
def test_an_address_that_is_encrypted_or_here(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBOOK_OUTLET_WEBHOOK_URL", url)
    settings = load_settings(outlet_concurrency=2)
    outlet = configured_outlet(settings)
    assert isinstance(outlet, WebhookOutlet)
    assert (outlet.url.get_secret_value(), outlet.name, outlet.concurrency) == (url, "webhook", 2)
    assert SECRET not in repr(settings) + repr(outlet)


@pytest.mark.parametrize(
    "url",
    [
        f"http://example.com/{SECRET}",
        f"ftp://127.0.0.1/{SECRET}",
        f"{SECRET}",
        f"https:///{SECRET}",
    ],
)
def test_any_other_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(SettingsError, match="OUTLET_WEBHOOK_URL") as caught:
        load_settings(outlet_webhook_url=url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["", "Two Words", "x" * 33, "-first"])
def test_a_name_fits_its_column(name: str) -> None:
    with pytest.raises(SettingsError, match="OUTLET_WEBHOOK_NAME"):
        load_settings(outlet_webhook_name=name)


def test_no_outlet_by_default() -> None:
    assert configured_outlet(load_settings()) is None
