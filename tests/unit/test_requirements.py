"""The pins fit pyproject.toml, are complete and hashed; the libraries' page and licences too."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

FILES = {
    "requirements.txt": ["ocr"],
    "requirements-dev.txt": ["ocr", "test"],
}
ON_TOP = "requirements-realmodel.txt"
"""What is installed on top of the tests' set, for `make realmodel` alone."""
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>.+))?$")
HASH = re.compile(r"^--hash=sha256:[0-9a-f]{64}$")
# Anything that binds the work that uses it. LGPL does not: see the libraries' page.
COPYLEFT = re.compile(
    r"(?<!L)(?<!Lesser )\b(A?GPL|(Affero )?General Public License)", re.IGNORECASE
)


def pins_of(text: str) -> dict[str, list[tuple[Version, Marker | None]]]:
    """Read a requirements file; fails on any line that is not a hashed pin or a comment."""
    pins: dict[str, list[tuple[Version, Marker | None]]] = {}
    for statement in text.replace("\\\n", "\n    ").split("\n"):
        line = statement.strip()
        if not line or line.startswith("#") or HASH.match(line):
            continue
        match = PIN.match(line)
        assert match is not None, f"neither a pin, nor a hash, nor a comment: {line!r}"
        marker = Marker(match["marker"]) if match["marker"] else None
        pins.setdefault(canonicalize_name(match["name"]), []).append(
            (Version(match["version"]), marker)
        )
    return pins


def direct_dependencies(repository: Path, extras: list[str]) -> list[Requirement]:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    lines = list(project["project"]["dependencies"])
    for extra in extras:
        lines += project["project"]["optional-dependencies"][extra]
    lines += project["dependency-groups"]["build"]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(("name", "extras"), FILES.items(), ids=FILES)
def test_every_direct_dependency_is_pinned_within_its_bounds(
    name: str, extras: list[str], repository: Path
) -> None:
    pins = pins_of((repository / name).read_text(encoding="utf-8"))
    for wanted in direct_dependencies(repository, extras):
        versions = [version for version, _ in pins.get(canonicalize_name(wanted.name), [])]
        assert versions, f"{wanted.name} has no pin in {name}: run `make lock`"
        assert all(version in wanted.specifier for version in versions), (
            f"{wanted} is pinned to {versions} in {name}: run `make lock`"
        )


def test_what_comes_on_top_is_pinned_and_nothing_else(repository: Path) -> None:
    pins = pins_of((repository / ON_TOP).read_text(encoding="utf-8"))
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = project["optional-dependencies"]["realmodel"]
    assert {canonicalize_name(Requirement(text).name) for text in extra} <= set(pins)
    development = pins_of((repository / "requirements-dev.txt").read_text(encoding="utf-8"))
    assert set(pins) & set(development) == set()


@pytest.mark.parametrize("name", [*FILES, ON_TOP])
def test_every_pin_is_hashed_and_no_place_is_named(name: str, repository: Path) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host| @ ", text)
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) >= len(pins_of(text))
    unhashed = [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block]
    assert not unhashed


def test_both_files_agree(repository: Path) -> None:
    runtime, development = (
        pins_of((repository / name).read_text(encoding="utf-8")) for name in FILES
    )
    differing = {
        name: (versions, development.get(name))
        for name, versions in runtime.items()
        if {version for version, _ in versions}
        != {version for version, _ in development.get(name, [])}
    }
    assert differing == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("lib>=1", "neither", id="no-pin"),
        pytest.param("lib @ file:///x", "neither", id="address"),
        pytest.param("--index-url=x", "neither", id="option"),
    ],
)
def test_reader_refuses_what_is_no_pin(text: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        pins_of(text)


def test_every_direct_dependency_has_its_line_on_the_page(repository: Path) -> None:
    page = (repository / "docs" / "adr" / "002-libraries.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE))
    wanted = {
        dependency.name
        for dependency in direct_dependencies(
            repository, ["bedrock", "gemini", "ocr", "test", "realmodel"]
        )
    }
    assert told == wanted


def test_page_names_the_licence_that_the_installed_package_names(repository: Path) -> None:
    """A licence may change with a release; only names in SPDX form can be compared."""
    page = (repository / "docs" / "adr" / "002-libraries.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", page, flags=re.MULTILINE)
    # What `make realmodel` alone needs is not installed here.
    absent = {need.name for need in direct_dependencies(repository, ["realmodel"])}
    absent -= {need.name for need in direct_dependencies(repository, [])}
    told = {name: licence.split(" (")[0] for name, licence in rows if name not in absent}
    named = {
        name: text
        for name in told
        if (text := spdx_of(importlib.metadata.metadata(name))) is not None
    }
    assert len(named) > len(told) // 2
    assert {name: told[name] for name in named} == named


def spdx_of(metadata: importlib.metadata.PackageMetadata) -> str | None:
    """Give the licence where it is told as a name, not as a text."""
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    if "License" not in metadata:
        return None
    told = metadata["License"]
    return told if re.fullmatch(r"[A-Za-z]+(-[A-Za-z0-9.]+)*", told) else None


def licence_of(metadata: importlib.metadata.PackageMetadata) -> str:
    """Join what a package says of its licence; only the head of a licence pasted in full."""
    classifiers = [
        line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    names = [name for name in ("License-Expression", "License") if name in metadata]
    return " / ".join([*(metadata[name][:80] for name in names), *classifiers])


def test_nothing_in_the_runtime_binds_the_work_that_uses_it(repository: Path) -> None:
    pins = pins_of((repository / "requirements.txt").read_text(encoding="utf-8"))
    here = [
        name
        for name, versions in pins.items()
        if any(marker is None or marker.evaluate() for _, marker in versions)
    ]
    licences = {name: licence_of(importlib.metadata.metadata(name)) for name in here}
    assert {name: text for name, text in licences.items() if COPYLEFT.search(text)} == {}
    lesser = {name for name, text in licences.items() if re.search("LGPL|Lesser", text)}
    assert lesser == {"psycopg", "psycopg-binary", "psycopg2-binary"}


@pytest.mark.parametrize(
    ("licence", "binds"),
    [
        ("GPL-3.0-only", True),
        ("GNU Affero General Public License v3", True),
        ("AGPL-3.0", True),
        ("License :: OSI Approved :: GNU General Public License (GPL)", True),
        ("LGPL-3.0-only", False),
        ("GNU Library or Lesser General Public License (LGPL)", False),
        ("Apache-2.0", False),
    ],
)
def test_copyleft_is_told_from_lesser(licence: str, binds: bool) -> None:
    assert bool(COPYLEFT.search(licence)) is binds
