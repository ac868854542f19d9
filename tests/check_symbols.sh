#!/usr/bin/env bash
# Only ew_ symbols: the archive has no other globals, and the shared library exports exactly what the public headers
# declare.  No function takes 64 KiB of stack or more: it belongs to the caller's thread, whose size is not ours.
# usage: check_symbols.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
lib=$2/src/libedgewise
status=0

verdict() {
    if [ -n "$2" ]; then
        echo "$2"
        echo "FAIL $1"
        status=1
    else
        echo "ok $1"
    fi
}

verdict "archive has only ew_ globals" "$(
    nm -g --defined-only "$lib.a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^ew_/ { print $3 }' | sort -u
)"
exported=$(nm -D --defined-only "$lib.so" | awk '{ print $3 }' | sort)
declared=$(grep -ohE '^EW_API.*' "$1"/include/*.h | grep -oE 'ew_[a-z0-9_]+\(' | tr -d '(' | sort -u)
verdict "shared library exports what the header declares" "$(diff <(echo "$declared") <(echo "$exported") || true)"
# "sub $0x10000,%rsp", of five to seven hexadecimal digits: a negative number has sixteen.
verdict "no function takes 64 KiB of stack" "$(objdump -d --no-show-raw-insn "$2/src/edgewise" |
    awk '/>:$/ { name = $2 } /sub +\$0x[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]?[0-9a-f]?,%rsp/ { print name, $3 }')"
exit $status
