#!/usr/bin/env bash
# Print the path of an installed interpreter: find_python.sh 3.12
set -euo pipefail

release=$1
# A shim of pyenv is on the PATH also where its release is not selected, and fails then.
for python in $(type -aP "python$release") "${PYENV_ROOT:-$HOME/.pyenv}/versions/$release".*/bin/python; do
  if "$python" -c '' 2>/dev/null; then
    echo "$python"
    exit
  fi
done
echo "Python $release is not installed: python$release is neither on the PATH nor among pyenv's releases" >&2
exit 1
