#!/usr/bin/env bash
# Style rules that a script can check: first lines, lengths, unique names.
# usage: check_style.sh SOURCE_DIR
set -euo pipefail
cd "$1"
status=0
mapfile -t files < <(find include src tests -name '*.[ch]' | sort)

# verdict NAME COMPLAINTS
verdict() {
    if [ -n "$2" ]; then
        echo "$2"
        echo "FAIL $1"
        status=1
    else
        echo "ok $1"
    fi
}

# One process for all files, since there are more than a thousand.
verdict "first line is the licence" "$(
    awk 'FNR == 1 && $0 != "/* SPDX-License-Identifier: Apache-2.0 */" { print FILENAME }' "${files[@]}"
)"
verdict "second line says what the file is" "$(awk 'FNR == 2 && !/^\/\* / { print FILENAME }' "${files[@]}")"
verdict "files have at most 800 lines" "$(awk 'FNR == 801 { print FILENAME }' "${files[@]}")"
# A function body runs from a '{' to a '}' in the first column.
verdict "functions have at most 100 lines" "$(
    awk 'FNR == 1 { start = 0 }
         /^\{/ { start = FNR }
         /^\}/ { if (start && FNR - start > 100) print FILENAME ":" start ": " FNR - start " lines"; start = 0 }' \
        "${files[@]}"
)"
verdict "file names are unique" "$(find src tests -name '*.[ch]' -printf '%f\n' | sort | uniq -d)"
verdict "struct and enum tags are defined once" "$(
    grep -rhoE --include='*.[ch]' '^(struct|enum|union) ew_[a-z0-9_]+ \{' include src | sed 's/^[a-z]* //' | sort | uniq -d
)"
verdict "processes are started in base/ alone" "$(
    grep -rnE --include='*.[ch]' '\b(fork|vfork|posix_spawnp?|exec[vl]p?e?|popen|system)\(' src | grep -vE '^src/base/(spawn|server|fork_server)\.' || true
)"
verdict "operators are known by &ew_op_x, not by name" "$(
    grep -rnE --include='*.c' 'strn?cmp\([^)]*op->name|op->name\[|strn?cmp\(op, |ew_op_find\("' src | grep -v '^src/op/' || true
)"
# They are called through a table of one function type (tests/programs.c).
verdict "mains of tests take argc and argv" "$(grep -n 'int main(void)' tests/*/test_*.c || true)"
# Release builds do not evaluate assertions: one that packed the report's figures left them out there.
verdict "assertions call nothing but what only looks" "$(
    awk '/EW_ASSERT\(/ && !/define EW_ASSERT/ {
             all = $0
             while (all !~ /;/ && getline > 0) all = all $0
             rest = all
             sub(/.*EW_ASSERT\(/, "", rest)
             gsub(/(sizeof|is_[a-z_]+) ?\(/, "", rest)
             if (rest ~ /[a-z0-9_]\(/ || rest ~ /\+\+|--|[^=!<>]=[^=]/) print FILENAME ":" FNR ": " all
         }' "${files[@]}"
)"
verdict "no TODO without an issue number" "$(grep -nE '\b(TODO|FIXME|XXX)\b' "${files[@]}" | grep -vE '#[0-9]+' || true)"
exit $status
