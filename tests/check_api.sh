#!/usr/bin/env bash
# The pages of the C interface contain every exported function of the headers, with a comment above it.
# usage: check_api.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
cd "$1"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
if ! awk -f docs/api.awk include/*.h >"$dir/api.md"; then status=1; fi
# Names of functions as the compiler sees them: from the headers without comments.
mapfile -t names < <(${CC:-cc} -E -P include/edgewise*.h 2>/dev/null |
    tr '\n' ' ' | grep -oE 'visibility[^;]*ew_[a-z0-9_]+\(' | grep -oE 'ew_[a-z0-9_]+\($' | tr -d '(' | sort -u)
[ ${#names[@]} -ge "$(cat include/edgewise*.h | grep -c "^EW_API")" ] || { echo "only ${#names[@]} functions found in the headers"; status=1; }
for name in "${names[@]}"; do
    grep -q "^###.*\`$name\`" "$dir/api.md" || { echo "$name is not in the pages"; status=1; }
done
# Reports a function without a comment.
printf '/* A header. */\n\nEW_API int ew_bare(void);\n' >"$dir/bare.h"
if awk -f docs/api.awk "$dir/bare.h" >/dev/null 2>"$dir/said" || ! grep -q ew_bare "$dir/said"; then
    echo "a function without a comment passes"
    status=1
fi
if [ $status -eq 0 ]; then echo "ok api: ${#names[@]} functions"; else echo "FAIL api"; fi
exit $status
