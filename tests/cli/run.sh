#!/usr/bin/env bash
# Runs the command-line cases.  A case is NAME.sh, with the expected output in NAME.stdout, NAME.stderr and NAME.exit; a
# missing file means that the output is not checked, and the exit status must be 0.  Scripts run in an empty folder with
# `edgewise` in PATH and CASES naming this folder; in outputs SOURCE and WORK stand for the paths of the tree and of
# this folder.
# With EW_TEST_QUICK, as under sanitizers, cases with "# once:" are skipped; EW_TEST_TIMES=1 prints CPU seconds.
# usage: run.sh SOURCE_DIR BUILD_DIR [K/N | NAME...]      all cases, part K of N of them, or these
#        UPDATE=1 stores the output as the expected output
set -euo pipefail
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
CASES=$source/tests/cli
export CASES PATH=$build/src:$PATH LC_ALL=C
shift 2
part=1 parts=1
if [[ ${1:-} == */* ]]; then
    part=${1%/*} parts=${1#*/}
    shift
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# compare CASE KIND: true if the output is as expected, or not checked.
compare() {
    local want=$CASES/$1.$2 got=$work/$1.$2
    if [ -n "${UPDATE:-}" ] && { [ -s "$got" ] || [ -e "$want" ]; }; then cp "$got" "$want"; fi
    [ -e "$want" ] || return 0
    diff -u --label "expected $2" --label "printed $2" "$want" "$got"
}

# used: CPU time of ended child processes, in hundredths of a second.
used() {
    local stat
    read -ra stat </proc/$$/stat
    echo $((stat[15] + stat[16]))
}

count=0
for script in "$CASES"/*.sh; do
    name=$(basename "$script" .sh)
    [ "$name" != run ] || continue
    count=$((count + 1))
    [ $((count % parts)) -eq $((part % parts)) ] || continue
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    if [ -n "${EW_TEST_QUICK:-}" ] && grep -q '^# once:' "$script"; then continue; fi
    mkdir "$work/$name"
    code=0 before=$(used)
    (cd "$work/$name" && bash -eu "$script") >"$work/$name.stdout" 2>"$work/$name.stderr" </dev/null || code=$?
    sed -i -e "s|$work/$name|WORK|g" -e "s|$source|SOURCE|g" "$work/$name.stdout" "$work/$name.stderr"
    want=0
    if [ -n "${UPDATE:-}" ] && [ $code -ne 0 ]; then echo $code >"$CASES/$name.exit"; fi
    if [ -e "$CASES/$name.exit" ]; then want=$(cat "$CASES/$name.exit"); fi
    if [ $code -eq 77 ]; then
        echo "skip cli/$name: $(tail -n 1 "$work/$name.stderr")"
    elif compare "$name" stdout && compare "$name" stderr && [ $code -eq "$want" ]; then
        echo "ok cli/$name${EW_TEST_TIMES:+  $((($(used) - before) / 100)).$((($(used) - before) % 100 / 10)) s}"
    else
        [ $code -eq "$want" ] || { echo "exit $code, expected $want"; tail -n 5 "$work/$name.stderr"; }
        echo "FAIL cli/$name"
        status=1
    fi
done
exit $status
