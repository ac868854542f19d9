#!/usr/bin/env bash
# Every shell script passes shellcheck, including the generated completion, and every Python file
# pyflakes: no undefined names.
# usage: check_shell.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
cd "$1"
status=0 ran=0

# Runs the program on the files, after its name and that of the check.
check() {
    local title=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "skip $title: no $1"
        return
    fi
    ran=1
    if "$@"; then
        echo "ok $title"
    else
        echo "FAIL $title"
        status=1
    fi
}

mapfile -t scripts < <(grep -rlIE '^#!.*(ba)?sh\b' run .ci tests bench tools 2>/dev/null | sort)
made=$2/gen/edgewise.bash
if [ -f "$made" ]; then scripts+=("$made"); fi
check shell shellcheck -x "${scripts[@]}"
mapfile -t python < <(find bench examples lab python tests -name '*.py' | sort)
check python pyflakes3 "${python[@]}"
[ $ran -ne 0 ] || exit 77
exit $status
