#!/usr/bin/env bash
# Fault injection: every allocation, and every write, sync, rename and mkdir of the main commands fails once (a sample
# if there are many: EW_FAULT_POINTS of each, 0 for all).  Then the program must end by itself, with a line that gives
# the reason or with a complete result, and leave nothing half-written.
# Killed at one of the latter calls, it leaves its output old or whole, and the next run of the same command succeeds and
# leaves nothing else.
# Board settings changed for a command must be restored if Ctrl-C arrives at any of these calls.
# usage: check_faults.sh SOURCE_DIR BUILD_DIR [CASE...]
set -uo pipefail
fixtures=$(cd "$1" && pwd)/tests/fixtures
build=$(cd "$2" && pwd)
records=$fixtures/neuralscale/vgg_10_eff_c10_14.csv modes=$fixtures/train-modes.csv
shift 2
library=$build/tests/libew_fault.so
points=${EW_FAULT_POINTS:-12}
# NVIDIA's libraries, loaded by the CUDA module, abort if one of their own allocations fails.
export PATH=$build/src:$PATH LC_ALL=C EW_UNIT=test OMP_NUM_THREADS=1 EDGEWISE_CUDA_MODULE=none
[ -e "$library" ] || { echo "no library of faults in this build (sanitizers, or another machine's)" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0 runs=0

# Input files of the commands below.
edgewise export lenet5 -o net.onnx >/dev/null 2>&1 || exit 1
edgewise data make --kind digits --format idx --train 64 --test 32 --to digits >/dev/null 2>&1 || exit 1
printf '[a]\ncommand = bench\nnetwork = lenet5\niters = 1\nwarmup = 0\nthreads = 1\n' >one.study
edgewise study one.study --db store.db --busy 1 >/dev/null 2>&1 || exit 1
edgewise data make --kind digits --train 3 --test 2 --to images >/dev/null 2>&1 || exit 1
edgewise quantize net.onnx --scheme pow2 --calib digits:8 --mean 0.5 --std 0.5 --threads 1 -o pow2.onnx >/dev/null 2>&1 || exit 1
edgewise run net.onnx --random --seed 1 --save in.npy >/dev/null 2>&1 || true
small="--data digits --batch 32 --epochs 1 --threads 1 --workers 0"

# name | command | its output (none: -); % is the case's folder, new for each run
cases="info|info net.onnx|-
run|run net.onnx --random --threads 1|-
export|export lenet5 -o %/out.onnx|out.onnx
compile|compile net.onnx -o %/out.ewe|out.ewe
quantize|quantize net.onnx --calib digits:8 --mean 0.5 --std 0.5 --threads 1 -o %/out.onnx|out.onnx
pack|data pack digits --to %/out.pack|out.pack
train|train lenet5 $small -o %/run|run
study|study one.study --db %/s.db --busy 1 --scratch %/runs|s.db
dry-run|study one.study --db store.db --dry-run|-
prune|prune net.onnx --keep 0.5 --threads 1 -o %/out.onnx|out.onnx
scale|scale generate vgg11_cifar --from $records --ratio 0.25 -o %/out.widths --svg %/out.svg|out.widths
federate|federate lenet5 --data digits --clients 2 --share 1 --rounds 2 --local-epochs 1 --threads 1 --db %/s.db -o %/run|run
predict|predict --from $modes --workload lenet --modes 8/2265/1377/2133 --csv %/out.csv --html %/out.html|out.csv
recommend|recommend --from $modes --workload lenet --limit power=20W --modes 8/2265/1377/2133|-
xmodel|export pow2.onnx -o %/out.xmodel|out.xmodel
eval|eval net.onnx --data digits --mean 0.5 --std 0.5 --threads 1 --csv %/out.csv|out.csv
folder|data make --kind digits --train 3 --test 2 --to %/out|out
images|data info images|-
reproduce|reproduce --db store.db -o %/out.html|out.html
results|results export %/s.db --db store.db|s.db
report|report --db store.db -o %/out.html|out.html
clips|data make --kind motion --train 2 --test 1 --to %/out|out
capture|probe --root $fixtures/boards/rpi4 --capture %/out|out"

say() {
    echo "FAIL $1: $2 $3: $4"
    [ ! -s "$work/err" ] || sed 's/^/    /' "$work/err" | tail -n 3
    failures=$((failures + 1))
}

# judge NAME KIND N STATUS MADE: checks what one run has left
judge() {
    local left
    if [ "$4" -ge 124 ]; then
        say "$1" "$2" "$3" "ended by a signal or a time-out ($4)"
    elif [ "$4" -ne 0 ] && ! grep -q '^edgewise: ' err; then
        say "$1" "$2" "$3" "exit $4 without a reason"
    fi
    ! grep -q 'rollback' err || say "$1" "$2" "$3" "tells of a consequence, not of the reason"
    # A folder that contains only our marker is one whose removal failed; the next run removes it.
    left=$(find now -name '*.tmp' -o -name '.*.part' -o -name '.*.stage.*' -empty -o \
        -path '*/.*.stage.*/*' ! -name .edgewise-owned | head -n 1)
    [ -z "$left" ] || say "$1" "$2" "$3" "left $left"
    case $5 in
    - | run | s.db) ;;
    *)
        if [ "$4" -eq 0 ] && [ ! -s "now/$5" ]; then say "$1" "$2" "$3" "exit 0, but no $5"; fi
        if [ -e "now/$5" ] && [ "$(stat -c %s "now/$5")" -lt "$(($(stat -c %s "whole/$5") * 9 / 10))" ]; then
            say "$1" "$2" "$3" "half of $5"
        fi
        ;;
    esac
    if [ "$5" = run ] && [ -e now/run/last.ckpt ]; then
        edgewise "$1" --resume now/run >/dev/null 2>err || say "$1" "$2" "$3" "what is there cannot be taken up again"
    fi
    if [ "$5" = s.db ] && [ -e now/s.db ]; then
        edgewise results --db now/s.db >/dev/null 2>&1 || say "$1" "$2" "$3" "a damaged store"
    fi
}

# one KIND N COMMAND: runs the command in a new folder with its n-th call failing
one() {
    rm -rf now && mkdir now
    # shellcheck disable=SC2086
    timeout 60 env FAULT_KIND="$1" FAULT_AT="$2" FAULT_COUNT="$work/count" LD_PRELOAD="$library" \
        edgewise ${3//%/now} >out 2>err
}

files() {
    find "$1" -type f | sed "s|$1||" | sort
}

# killed NAME N COMMAND MADE: what a kill at the n-th call leaves, and the next run of the command
killed() {
    local again=${3//%/now} left
    { one kill "$2" "$3"; } 2>/dev/null
    if [ -f "now/$4" ] && [ "$4" != s.db ] && [ "$(stat -c %s "now/$4")" -lt "$(($(stat -c %s "whole/$4") * 9 / 10))" ]; then
        say "$1" kill "$2" "half of $4"
    fi
    if [ "$4" = run ] && [ -e now/run/last.ckpt ]; then again="$1 --resume now/run"; fi
    if [ -d "now/$4" ] && [ "$4" != run ] && [ "$(files "now/$4")" = "$(files "whole/$4")" ]; then again=; fi # complete
    # shellcheck disable=SC2086
    [ -z "$again" ] || timeout 60 edgewise $again >out 2>err || say "$1" kill "$2" "the next run fails"
    left=$(find now -name '*.tmp' -o -name '*.part' -o -name '.*.stage.*' -o -name .edgewise-owned | head -n 1)
    [ -z "$again" ] || [ -z "$left" ] || say "$1" kill "$2" "left $left"
}

while IFS='|' read -r name command makes; do
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    kinds="alloc io"
    [ "$name" != clips ] || kinds=io # encoders of FFmpeg abort if an allocation of theirs fails
    for kind in $kinds; do
        one "$kind" 0 "$command" || { say "$name" "$kind" 0 "fails without a fault"; continue; }
        rm -rf whole && mv now whole
        total=$(cat count)
        stride=1
        if [ "$points" -gt 0 ] && [ "$total" -gt "$points" ]; then stride=$(((total + points - 1) / points)); fi
        for ((n = 1; n <= total; n += stride)); do
            one "$kind" "$n" "$command"
            judge "$name" "$kind" "$n" $? "$makes"
            runs=$((runs + 1))
        done
        echo "$name: $total of $kind, each $stride. failed once"
    done
    [ "$makes" != - ] || continue
    one kill 0 "$command"
    total=$(cat count)
    stride=1
    if [ "$points" -gt 0 ] && [ "$total" -gt "$points" ]; then stride=$(((total + points - 1) / points)); fi
    for ((n = 1; n <= total; n += stride)); do
        killed "$name" "$n" "$command" "$makes"
        runs=$((runs + 1))
    done
    echo "$name: killed at each $stride. of $total calls"
done <<<"$cases"

# Some network file systems have no locks.
if [ $# -eq 0 ] || [[ " $* " == *" locks "* ]]; then
    for command in "train lenet5 $small -o %/run" "federate lenet5 --data digits --clients 2 --share 1 --rounds 1 --local-epochs 1 --threads 1 -o %/run" \
        "data make --kind digits --train 3 --test 2 --to %/out"; do
        one lock 0 "$command" || say "${command%% *}" lock 0 "fails"
        runs=$((runs + 1))
    done
    echo "locks: 3 commands without"
fi

interrupted() {
    rm -rf now && mkdir now && cp -a "$fixtures/boards/jetson-nano-jp4" now/board
    env FAULT_KIND=int FAULT_AT="$1" FAULT_COUNT="$work/count" LD_PRELOAD="$library" \
        edgewise power set 5W --dvfs off --root now/board -- true >out 2>err
    (cd now/board && grep -ra . sys | sort)
}
if [ $# -eq 0 ] || [[ " $* " == *" power "* ]]; then
    interrupted 0 >board.txt
    total=$(cat count)
    for ((n = 1; n <= total; n++)); do
        interrupted "$n" | cmp -s - board.txt || say power int "$n" "settings left changed"
        runs=$((runs + 1))
    done
    echo "power: Ctrl-C at each of $total calls"
fi
echo "$runs runs with a fault, $failures failures"
[ "$failures" -eq 0 ]
