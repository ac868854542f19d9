#!/usr/bin/env bash
# Every script passes shellcheck, including the generated completion.
# usage: check_shell.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
cd "$1"
if ! command -v shellcheck >/dev/null; then echo "skip shell: no shellcheck"; exit 77; fi
mapfile -t scripts < <(grep -rlIE '^#!.*(ba)?sh\b' run .ci tests bench tools 2>/dev/null | sort)
made=$2/gen/edgewise.bash
if [ -f "$made" ]; then scripts+=("$made"); fi
if shellcheck -x "${scripts[@]}"; then
    echo "ok shell"
else
    echo "FAIL shell"
    exit 1
fi
