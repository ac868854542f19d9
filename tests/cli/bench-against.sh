#!/usr/bin/env bash
# bench --against: the newest run with the same options is the baseline; --max-slowdown decides the exit status.
# once: the figures of bench are covered by other cases.
exec 2>&1
bench() { edgewise bench lenet5 --iters 3 --warmup 1 --threads 1 "$@"; }
bench --db a.db >/dev/null 2>&1
bench --db a.db >/dev/null 2>&1
bench --batch 2 --db a.db >/dev/null 2>&1
bench --against a.db 2>/dev/null | sed -n '/^baseline/,$p' | sed -E 's/, [0-9T:Z-]+, .*//; s/ +[-+]?[0-9.]+ (ms|KiB|%)/ N/g; s/ +/ /g'
bench --batch 2 --against a.db --json 2>/dev/null | grep -cE '"(run": 3|min_ms": [0-9]|planned_bytes": [0-9])'
# Slower than a baseline that took no time at all, and never slower than one that took a second.
command -v python3 >/dev/null || { echo "python3 is needed to change a database"; exit 77; }
with_time() {
    cp a.db "$1"
    python3 -c "import sqlite3; d = sqlite3.connect('$1'); d.execute(\"UPDATE metric SET lowest = $2 WHERE name = 'median_ms'\"); d.commit()"
}
with_time fast.db 1e-9
with_time slow.db 1000
bench --against fast.db --max-slowdown 10 2>&1 >/dev/null | sed -E 's/[0-9.e+]+ % longer/N % longer/' | grep -v '^warning'
bench --against fast.db --max-slowdown 10 >/dev/null 2>&1 || echo "exit $?"
bench --against slow.db --max-slowdown 10 >/dev/null 2>&1 && echo "exit $?"
# The run is recorded although the gate fails, and does not count as its own baseline.
bench --against fast.db --max-slowdown 10 --db fast.db >/dev/null 2>&1 || edgewise results --db fast.db --where "id = 4" --columns status
edgewise export lenet5 -o net.onnx >/dev/null 2>&1
mkdir -p old && cp net.onnx old/
edgewise bench old/net.onnx --iters 3 --db a.db >/dev/null 2>&1
edgewise bench net.onnx --iters 3 --against a.db 2>/dev/null | grep -c '^baseline: *run 4'
{ bench --train --against a.db || echo "exit $?"; } | sed -E 's/[a-z0-9]+ kernels/ISA kernels/'
bench --max-slowdown 5 || echo "exit $?"
bench --against a.db --simulate jetson-nano || echo "exit $?"
edgewise bench lenet5 net.onnx --against a.db || echo "exit $?"
