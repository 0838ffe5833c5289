"""Settings: which layer wins, what is refused, and that nothing is guessed from an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.clock import system_clock
from resources.settings import (
    PROJECT,
    SettingsError,
    UnsupportedPlatform,
    load_settings,
    require_supported_platform,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with a folder for profiles, which is also where the command is run."""
    (tmp_path / "profiles").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TALLYBOOK_HOME", str(tmp_path))
    return tmp_path


LAYERS = ("argument", "environment", ".env", "profile", "default")


@pytest.mark.parametrize("first", range(len(LAYERS)), ids=LAYERS)
def test_the_strongest_layer_wins(home: Path, monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Every layer from `first` on says something else; the first is what counts."""
    given = {}
    for layer in LAYERS[first:]:
        line = f"TALLYBOOK_OWNER={layer.strip('.')}\n"
        if layer == "argument":
            given = {"owner": "argument"}
        elif layer == "environment":
            monkeypatch.setenv("TALLYBOOK_OWNER", layer)
        elif layer == ".env":
            (home / ".env").write_text(line, encoding="utf-8")
        elif layer == "profile":
            (home / "profiles" / "dev.env").write_text(line, encoding="utf-8")
    wanted = {".env": "env", "default": "tallybook"}.get(LAYERS[first], LAYERS[first])
    assert load_settings(**given).owner == wanted


def test_an_argument_of_none_says_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBOOK_OWNER", "someone")
    assert load_settings(owner=None, state=None).owner == "someone"


@pytest.mark.parametrize("chosen_by", ["argument", "environment", ".env"])
def test_the_profile_chooses_its_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    for name in ("dev", "prod"):
        text = f"TALLYBOOK_SOURCE_NAME={name}-source\n"
        (home / "profiles" / f"{name}.env").write_text(text, encoding="utf-8")
    given = {}
    if chosen_by == "argument":
        given = {"profile": "prod"}
    elif chosen_by == "environment":
        monkeypatch.setenv("TALLYBOOK_PROFILE", "prod")
    else:
        (home / ".env").write_text("TALLYBOOK_PROFILE=prod\n", encoding="utf-8")
    settings = load_settings(**given)
    assert (settings.profile, settings.source_name) == ("prod", "prod-source")


def test_places_start_from_home(home: Path) -> None:
    settings = load_settings(state="here/state", source="/elsewhere", specs="mine")
    assert settings.state_folder == home / "here" / "state"
    assert settings.source_folder == Path("/elsewhere")
    assert settings.spec_folders == [PROJECT / "partitions" / "versions", home / "mine"]
    assert settings.ledger_place == f"sqlite:///{home / 'here' / 'state' / 'ledger.sqlite'}"


def test_the_ledger_can_be_elsewhere(home: Path) -> None:
    assert load_settings(ledger_url="sqlite:////x/y").ledger_place == "sqlite:////x/y"


@pytest.mark.parametrize("name", ["SPECS", "LEDGER_URL", "OWNER", "PARSER_WORKERS", "PROFILE"])
@pytest.mark.parametrize("layer", ["environment", ".env"])
def test_an_empty_value_says_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, layer: str
) -> None:
    plain = load_settings()
    if layer == "environment":
        monkeypatch.setenv(f"TALLYBOOK_{name}", "")
    else:
        (home / ".env").write_text(f"TALLYBOOK_{name}=\n", encoding="utf-8")
    assert load_settings() == plain


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROFILE", "production"),
        ("PARSER_WORKERS", "-1"),
        ("PARSER_WORKERS", "many"),
        ("SHARD_RECORDS", "0"),
        ("SOURCE_NAME", "A b"),
        ("SOURCE_NAME", "a/b"),
        ("OWNER", "o" * 100),
    ],
)
def test_a_value_that_cannot_be_used_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"TALLYBOOK_{name}", value)
    with pytest.raises(SettingsError, match=f"^TALLYBOOK_{name}: ") as refused:
        load_settings()
    assert "validation error" not in str(refused.value)


# The clock of a test


@pytest.mark.parametrize("profile", ["dev", "staging"])
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8099/control/clock", "http://[::1]:1/", "http://localhost/clock"]
)
def test_a_clock_on_this_machine_may_be_named(home: Path, profile: str, url: str) -> None:
    settings = load_settings(profile=profile, clock_url=url)
    assert settings.clock_url == url
    assert settings.clock is not system_clock


def test_without_a_clocks_url_the_time_is_this_machines(home: Path) -> None:
    assert load_settings().clock_url is None
    assert load_settings().clock is system_clock


@pytest.mark.parametrize(
    ("profile", "url"),
    [
        pytest.param("prod", "http://127.0.0.1:8099/clock", id="prod"),
        pytest.param("dev", "http://clock.example/now", id="elsewhere"),
        pytest.param("dev", "http://10.0.0.7/now", id="private-address"),
        pytest.param("dev", "http://127.0.0.1.example.com/", id="looks-like-loopback"),
        pytest.param("dev", "http://127.0.0.1@example.com/", id="loopback-as-user"),
        pytest.param("dev", "127.0.0.1:8099", id="no-url"),
        pytest.param("prod", "http://clock.example/now", id="prod-and-elsewhere"),
    ],
)
@pytest.mark.parametrize("layer", ["argument", "environment", ".env"])
def test_any_other_clock_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, profile: str, url: str, layer: str
) -> None:
    given = {"profile": profile}
    if layer == "argument":
        given["clock_url"] = url
    elif layer == "environment":
        monkeypatch.setenv("TALLYBOOK_CLOCK_URL", url)
    else:
        (home / ".env").write_text(f"TALLYBOOK_CLOCK_URL={url}\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="clock_url is for tests"):
        load_settings(**given)


# Bedrock

ROLE = "arn:aws:iam::123456789012:role/batch"


def test_places_of_bedrock_jobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().bedrock_role_arn, load_settings().bedrock_s3_uri) == (None, None)
    monkeypatch.setenv("TALLYBOOK_BEDROCK_ROLE_ARN", ROLE)
    assert load_settings().bedrock_role_arn == ROLE


@pytest.mark.parametrize(
    "uri", ["s3://bucket", "s3://bucket/", "s3://my.bucket-1/some/prefix", "s3://0bucket/x"]
)
def test_a_place_in_a_bucket_is_taken(home: Path, uri: str) -> None:
    assert load_settings(bedrock_s3_uri=uri).bedrock_s3_uri == uri


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BEDROCK_ROLE_ARN", "role/batch"),
        ("BEDROCK_ROLE_ARN", f" {ROLE}"),
        ("BEDROCK_S3_URI", "bucket/prefix"),
        ("BEDROCK_S3_URI", "https://bucket/prefix"),
        ("BEDROCK_S3_URI", "s3://"),
        ("BEDROCK_S3_URI", "s3:///prefix"),
        ("BEDROCK_S3_URI", "s3://Bucket/prefix"),
        ("BEDROCK_S3_URI", "s3://-bucket/prefix"),
    ],
)
def test_another_form_for_bedrock_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"TALLYBOOK_{name}", value)
    with pytest.raises(SettingsError, match=f"^TALLYBOOK_{name}: "):
        load_settings()


@pytest.mark.parametrize("file", [".env", "profiles/dev.env"])
def test_a_file_in_another_encoding_is_named(home: Path, file: str) -> None:
    (home / file).write_bytes("TALLYBOOK_OWNER=Jürgen\n".encode("latin-1"))
    with pytest.raises(SettingsError, match="UTF-8"):
        load_settings()


@pytest.mark.parametrize("platform", ["win32", "cygwin"])
def test_windows_is_refused(platform: str) -> None:
    with pytest.raises(UnsupportedPlatform, match="not on Windows: use WSL 2"):
        require_supported_platform(platform)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_systems_are_not(platform: str) -> None:
    require_supported_platform(platform)
