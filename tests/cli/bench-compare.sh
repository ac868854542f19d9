#!/usr/bin/env bash
# Networks and engines side by side; power from a meter; accuracy; protocols.
# once: commands and protocols are covered by other cases; this one checks the figures.
exec 2>&1
export XDG_CACHE_HOME=$PWD
edgewise compile lenet5 -o a.ewe --mean 0.5 --std 0.5 >/dev/null 2>&1
edgewise export lenet5 -o a.onnx >/dev/null 2>&1
meter='while :; do echo 7.5; sleep 0.02; done'
fast=(--warmup 1 --iters 4 --power-seconds 0.3)
edgewise bench a.onnx a.ewe "${fast[@]}" --power-from "$meter" | grep -v "^instruction" | sed -E 's/ +-?[0-9][^ ]*( (ms|x|MiB|KiB|W|B))?/ N/g; s/ +/ /g'
edgewise bench a.onnx a.ewe "${fast[@]}" --power-from "$meter" --json |
    grep -E '"(form|precision|params|cdl|power_rails)"' | sort | uniq -c
edgewise bench a.ewe "${fast[@]}" --power-from "$meter" --db power.db | sed -nE '/^(power|energy):/s/ [0-9][0-9.e+-]* / N /gp'
edgewise bench a.ewe "${fast[@]}" --power-from "$meter" --threads 1 --streams 2 --json | grep -cE '"(power|idle|peak)_w": 7\.[45]|"image_j": [0-9]'
edgewise bench a.ewe "${fast[@]}" --power-from ./no-meter --json | grep -v '^hint' || true
edgewise results --db power.db --json | grep -cE '"(power_w|image_j|images_per_s_per_w)": [0-9]'
edgewise bench lenet5 a.ewe --quick --eval synthetic:40 --mean 0.5 --std 0.5 --json |
    grep -cE '"accuracy": [0-9]'
edgewise bench a.ewe --profile --warmup 1 --iters 2 --json | grep -cE '"(median_ms|isa|kernel)"'
edgewise bench --protocol engine --quick squeezenet1_1 shufflenet_v2_x1_0 --json |
    grep -E '"(name|params|study_speedup)"'
edgewise bench --protocol scale --quick --json | grep -cE '"(real_time|trial_sd_ms)"'
for bad in "" "a.ewe a.onnx --train" "a.ewe --reference" "a.ewe --batch 2" "a.ewe a.onnx --eval nowhere" \
    "--protocol engine lenet5" "--protocol scale lenet5" "a.onnx --eval mnist"; do
    # shellcheck disable=SC2086 # words on purpose
    edgewise bench $bad --power-seconds 0 --iters 2 --warmup 0 | grep -v '^hint' || true
done
edgewise bench lenet5 --memory-limit 100K --iters 1 2>&1 || true
# Each network is a separate run in the store.
edgewise bench lenet5 a.ewe --iters 1 --warmup 0 --power-seconds 0 --db bench.db >/dev/null
edgewise results --db bench.db --json | grep '"network"'
edgewise bench --protocol engine --db bench.db 2>&1 || true
