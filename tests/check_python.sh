#!/usr/bin/env bash
# The Python package with the shared library of this build.
# usage: check_python.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
library=$(find "$2/src" -maxdepth 1 -name 'libedgewise.so' | head -n 1)
[ -n "$library" ] || { echo "SKIP: no shared library in $2/src"; exit 77; }
command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }
if nm -D "$library" | grep -q __asan_init; then echo "SKIP: python3 does not load the sanitizer first"; exit 77; fi
cd "$1/python"
EDGEWISE_PROGRAM=$(cd "$2" && pwd)/src/edgewise EDGEWISE_LIBRARY=$library PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 python3 -W error -m unittest discover -s tests
EDGEWISE_LIBRARY=$library PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1 python3 -W error ../examples/look.py | grep '100.0%  3' ||
    { echo "FAIL example look.py"; exit 1; }
