#!/usr/bin/env bash
# Every C file is formatted as by clang-format 14.
# usage: check_format.sh SOURCE_DIR
set -euo pipefail
cd "$1"
tool=
for t in clang-format-14 clang-format; do
    if command -v $t >/dev/null && $t --version | grep -q 'version 14\.'; then tool=$t; break; fi
done
if [ -z "$tool" ]; then echo "skip format: no clang-format 14"; exit 77; fi
mapfile -t files < <(find include src tests lab bench examples -name '*.[ch]' 2>/dev/null | sort)
found=$($tool --dry-run --Werror "${files[@]}" 2>&1 | grep -oE '^[^ :]+:[0-9]+' || true)
if [ -n "$found" ]; then
    head -n 20 <<<"$found"
    echo "FAIL format"
    exit 1
fi
echo "ok format"
