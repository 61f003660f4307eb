#!/usr/bin/env bash
# Resolve every lock file again; the result names no index, host or path.
set -euo pipefail

export UV_SYSTEM_CERTS=1
compile=(
  .venv/.uv/bin/uv pip compile --quiet --upgrade --universal --generate-hashes
  --no-emit-index-url --no-emit-find-links --python-version 3.11
  --custom-compile-command "make lock"
)

"${compile[@]}" pyproject.toml --group dev --output-file requirements/dev.lock
for release in requirements/spark-*.txt; do
  "${compile[@]}" pyproject.toml "$release" --group dev --output-file "${release%.txt}.lock"
done
for others in peers libraries; do
  "${compile[@]}" pyproject.toml "requirements/$others.txt" --extra cli --extra search --output-file "requirements/$others.lock"
done
"${compile[@]}" pyproject.toml requirements/oldest.txt --resolution lowest-direct \
  --extra cli --extra dynamodb --extra otel --extra search --extra ui --output-file requirements/oldest.lock
for source in requirements/*.in; do
  "${compile[@]}" "$source" --output-file "${source%.in}.lock"
done
