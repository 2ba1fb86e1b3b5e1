#!/usr/bin/env bash
# Writes requirements.lock: the versions of constraints.txt with the hashes of their files, for every
# platform and Python that exampp runs on. Needs uv.
set -euo pipefail
cd "$(dirname "$0")/.."

extras=(car datasets diversity openai pandas plots polars web)
echo 'hatchling>=1.27' | uv pip compile pyproject.toml - "${extras[@]/#/--extra=}" \
    --constraints constraints.txt --universal --python-version 3.11 \
    --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock
