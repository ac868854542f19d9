#!/usr/bin/env bash
# The commands on the CUDA module that runs on the host (cuda_host/README.md): a card that is absent, small or lost, calls
# that fail, and what results say about the device.
# usage: check_cuda_host.sh SOURCE_DIR BUILD_DIR
set -uo pipefail
build=$(cd "$2" && pwd)
export EDGEWISE_CUDA_MODULE=$build/tests/libew_cuda_host.so
[ -e "$EDGEWISE_CUDA_MODULE" ] || { echo "no CUDA module for the host in this build" >&2; exit 77; }
export PATH=$build/src:$PATH LC_ALL=C EW_UNIT=test
# The last fiber of each thread.
printf 'leak:fiber\n' >"${TMPDIR:-/tmp}/ew_cuda_host.$$"
export LSAN_OPTIONS=suppressions=${TMPDIR:-/tmp}/ew_cuda_host.$$:print_suppressions=0
work=$(mktemp -d)
trap 'rm -rf "$work" "${TMPDIR:-/tmp}/ew_cuda_host.$$"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "$1" >&2
    [ ! -e err ] || sed 's/^/    /' err >&2
    failures=$((failures + 1))
}

# refused TEXT COMMAND: it fails with one line that has TEXT, before it starts anything.
refused() {
    local text=$1
    shift
    "$@" >out 2>err && fail "$*: did not fail"
    if [ "$(grep -c '^edgewise: ' err)" != 1 ] || ! grep -q "^edgewise: .*$text" err; then fail "$*: no line with '$text'"; fi
    [ ! -e run ] || fail "$*: left its folder"
}

edgewise data make --to images --train 24 --test 4 >/dev/null 2>&1 || exit 1
train=(edgewise train lenet5 -d images -e 1 -b 4 --samples 12 --eval-samples 2 --workers 0)

# ---- No card ----

CUDA_VISIBLE_DEVICES='' refused 'no CUDA-capable device' "${train[@]}" --device cuda -o run
EW_CUDA_HOST_DRIVER=11000 refused 'no NVIDIA driver' "${train[@]}" --device cuda -o run
EDGEWISE_CUDA_MODULE=/nowhere.so refused 'nowhere.so' "${train[@]}" --device cuda -o run
refused 'no card 1 among' edgewise bench lenet5 --device cuda:1
EW_CUDA_HOST_MEMORY=1 refused 'out of memory' "${train[@]}" --device cuda -o run

# ---- Calls that fail ----

# Every call of a short run fails once; then all after it fail too (a sample of EW_FAULT_POINTS each).
# walk NAME COMMAND
walk() {
    local name=$1 calls n step later
    shift
    rm -rf run
    EW_CUDA_HOST_FAIL=1000000 "$@" >out 2>err || fail "$name"
    calls=$(sed -n 's/^cuda_host: \([0-9]*\) calls/\1/p' err)
    step=$((calls / ${EW_FAULT_POINTS:-5} + 1))
    for later in '' +; do
        for ((n = 1 + RANDOM % step; n <= calls; n += step)); do
            rm -rf run
            EW_CUDA_HOST_FAIL=$n$later timeout 120 "$@" >out 2>err
            case $? in
            0) [ -z "$later" ] || fail "$name: did not fail with call $n$later" ;;
            1) [ "$(grep -c '^edgewise: ' err)" = 1 ] || fail "$name: not one line for call $n$later" ;;
            *) fail "$name: ended badly at call $n$later" ;;
            esac
            ! grep -q Sanitizer err || fail "$name: error or leak at call $n$later"
            ! ls run/*.tmp* >/dev/null 2>&1 || fail "$name: a part of a file is left at call $n$later"
        done
    done
}

walk bench edgewise bench lenet5 --device cuda --batch 2 --iters 3 --warmup 1
walk train "${train[@]}" --device cuda,fp16 -o run

# ---- What results say ----

export EW_DEVICE=cuda
rm -f results.db err
edgewise bench lenet5 --precision fp16 --iters 2 --warmup 1 --db results.db >out 2>err || fail "bench"
grep -q 'cuda sm_90 fp16, host emulation' out || fail "bench: does not name the card"
edgewise results --db results.db --csv --columns machine_isa | grep -q 'cuda sm_90 fp16, host emulation' ||
    fail "results: do not name the card"

# A training stays on the device that it was started on.
rm -rf run
"${train[@]}" -o run >out 2>err || fail "train by EW_DEVICE"
grep -qx 'device = cuda' run/options.ini || fail "train: does not store its device"
CUDA_VISIBLE_DEVICES='' EW_DEVICE='' edgewise train --resume run -e 2 >out 2>err && fail "train: resumed on another device"

# Jobs on another device are other jobs.
printf '[a]\ncommand = bench\nnetwork = lenet5\niters = 1\nwarmup = 0\n' >one.study
EW_DEVICE='' edgewise study one.study --db study.db --busy 1 >out 2>err || fail "study on the CPU"
edgewise study one.study --db study.db --busy 1 >out 2>err || fail "study on the card"
edgewise study one.study --db study.db --busy 1 >out 2>err || fail "study on the card, again"
[ "$(edgewise results --db study.db --csv --columns machine_isa | grep -c host)" = 1 ] ||
    fail "study: not one run on the card"

exit $((failures > 0))
