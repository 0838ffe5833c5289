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
    {
        echo "# Made by \`make lock\` from pyproject.toml; do not edit."
        echo "# Installed with \`pip install --no-deps --require-hashes -r $output\`."
        cat "$output"
    } >"$output.new"
    mv "$output.new" "$output"
    echo "$output: $(grep -c '^[A-Za-z0-9].*==' "$output") pins"
}

upgrade=${1:-}
compile requirements-dev.txt bedrock gemini ocr test
# The pins of the larger set are the preferred ones of the smaller: both agree on every version.
if [[ -z $upgrade ]]; then
    [[ -f requirements.txt ]] || cp requirements-dev.txt requirements.txt
else
    cp requirements-dev.txt requirements.txt
    upgrade=
fi
compile requirements.txt ocr
cp requirements-dev.txt requirements-realmodel.txt
compile requirements-realmodel.txt bedrock gemini ocr test realmodel
