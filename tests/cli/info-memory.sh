#!/usr/bin/env bash
# Memory is that of the plan that runs: a network of the zoo and its exported ONNX file pack the same weights, as in
# bench, and activations are those that bench plans.
edgewise export mobilenet_v2_cifar -o net.onnx >/dev/null 2>&1
field() { sed -n "s/.*\"$1\": \([0-9]*\),*/\1/p" "$2"; }
for net in mobilenet_v2_cifar net.onnx; do
    edgewise info $net --json >info.json
    edgewise bench $net --iters 1 --warmup 0 --json >bench.json 2>/dev/null
    field packed_bytes info.json >>packed
    field packed_bytes bench.json >>packed
    [ "$(field activation_bytes info.json)" = $(($(field arena_bytes bench.json) - $(field packed_bytes bench.json))) ] &&
        echo "as planned"
done
uniq packed | wc -l
