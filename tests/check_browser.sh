#!/usr/bin/env bash
# The report, the live page and the page of a network in a real browser; screenshots go to BUILD_DIR/pictures.
# usage: check_browser.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)

browser=
for name in chromium chromium-browser google-chrome; do
    if [ -z "$browser" ]; then browser=$(command -v $name || true); fi
done
skip() { echo "skip browser: $1"; exit 77; }
[ -n "$browser" ] || skip "no Chromium"
command -v node >/dev/null || skip "no node"
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 18')" = true ] || skip "node is older than 18"

dir=$(mktemp -d)
pictures=$build/pictures
mkdir -p "$pictures"
pids=()
# shellcheck disable=SC2317 # called by trap
finish() {
    exec 9>&-
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT

edgewise=$build/src/edgewise
"$build/tests/results_sample" "$dir/results.db"
"$build/tests/results_sample" "$dir/hostile.db" hostile
for report in results hostile; do
    "$edgewise" report --db "$dir/$report.db" -o "$dir/$report.html" 2>/dev/null
done
"$edgewise" report --db "$dir/results.db" --still -o "$dir/still.html" 2>/dev/null
"$edgewise" bench squeezenet1_1 --quick --html "$dir/graph.html" >/dev/null 2>&1
grep -q 'id="library"' "$dir/results.html" || skip "built without the charting library"

# A running study, and the page that shows it.
mkfifo "$dir/hold"
"$build/tests/results_sample" "$dir/live.db" live <"$dir/hold" &
pids+=($!)
exec 9>"$dir/hold"
if ! "$edgewise" serve --port 0 --db "$dir/live.db" >"$dir/url" 2>"$dir/said" & then :; fi
pids+=($!)
for _ in $(seq 100); do
    if [ -s "$dir/url" ] || grep -q libmicrohttpd "$dir/said"; then break; fi
    sleep 0.05
done
[ -s "$dir/url" ] || skip "$(tail -n 1 "$dir/said")"

# A video clip, whose frames the page shows.
"$edgewise" export c3d_small --width 0.1 -o "$dir/c3d.onnx" >/dev/null 2>&1
head -c $((28 * 28 * 3 * 40)) /dev/urandom |
    "$edgewise" run "$dir/c3d.onnx" - --hop 2 --mean 0 --std 1 --live "$dir/live.db" >/dev/null 2>&1

timeout 120 node "$source/tests/browser/look.mjs" "$browser" "$dir/results.html" "$dir/hostile.html" \
    "$dir/still.html" "$(cat "$dir/url")" "$dir/graph.html" "$pictures"
