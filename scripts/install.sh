#!/usr/bin/env bash
# Make an environment hold exactly what a lock file lists: install.sh ENVIRONMENT LOCK
set -euo pipefail

environment=$1
lock=$2
bootstrap=.venv/.uv/bin
pip=("$bootstrap/python" -m pip --disable-pip-version-check)

# uv reads none of pip's settings; a machine set up for pip alone has its index there.
if [ -z "${UV_DEFAULT_INDEX:-}" ]; then
  index=${PIP_INDEX_URL:-$("${pip[@]}" config get global.index-url 2>/dev/null || true)}
  [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
fi
export UV_SYSTEM_CERTS=1

[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv --without-pip "$environment"
# Downloads are shown while they run; what is no terminal gets no list of all packages.
exec 3>&2
[ -t 2 ] || exec 3> >(grep --line-buffered -v '^ [-+~] ' >&2)
if ! "$bootstrap/uv" pip sync --require-hashes --python "$environment/bin/python" "$lock" 2>&3; then
  echo "uv could not install $lock; trying pip" >&2
  "${pip[@]}" --python "$environment/bin/python" install --quiet --require-hashes --requirement "$lock"
fi
