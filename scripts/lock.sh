#!/usr/bin/env bash
# Writes requirements.txt (what runs, OCR included), requirements-dev.txt (tests as well) and
# requirements-realmodel.txt (a small model too) from pyproject.toml: one set of pins for every
# platform and every Python from 3.11, with hashes and without any download address. Versions
# already pinned stay unless --upgrade is given.
# Called by `make lock`, which names the tools: UV.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${UV:?names the uv command; use make lock}"

compile() { # OUTPUT EXTRA...
    local output=$1 extras=()
    shift
    for extra in "$@"; do extras+=(--extra "$extra"); done
    "$UV" pip compile pyproject.toml "${extras[@]}" --group pyproject.toml:build \
        --universal --python-version 3.11 --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --no-header \
        ${upgrade:+"$upgrade"} --output-file "$output" >/dev/null
    add_head "$output"
}

add_head() { # FILE
    {
        echo "# Made by \`make lock\` from pyproject.toml; do not edit."
        echo "# Installed with \`pip install --no-deps --require-hashes -r $1\`."
        grep -v '^# Made by\|^# Installed with' "$1"
    } >"$1.new"
    mv "$1.new" "$1"
    echo "$1: $(grep -c '^[A-Za-z0-9].*==' "$1") pins"
}

upgrade=${1:-}
upgrade_small=$upgrade
compile requirements-dev.txt bedrock bucket gemini ocr queue test
# The pins of the larger set are the preferred ones of the smaller: both agree on every version.
if [[ -z $upgrade ]]; then
    [[ -f requirements.txt ]] || cp requirements-dev.txt requirements.txt
else
    cp requirements-dev.txt requirements.txt
    upgrade=
fi
compile requirements.txt ocr
# What the small model needs on top of the tests' set, and nothing of that set again.
"${UV%/*}/python" -c 'import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print("\n".join(project["optional-dependencies"]["realmodel"]))' |
    "$UV" pip compile - --universal --python-version 3.11 --generate-hashes --quiet \
        --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
        ${upgrade_small:+"$upgrade_small"} --output-file requirements-realmodel.txt >/dev/null
add_head requirements-realmodel.txt
