#!/usr/bin/env bash
# The examples run, and their results agree with the program's.
# usage: check_example.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
image=$1/tests/fuzz/corpus/image/rgb.jpg
printf 'zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n' >"$dir/names"
"$2/src/edgewise" compile lenet5 -o "$dir/net.ewe" --mean 0.5 --std 0.25 --class-names "$dir/names" >/dev/null 2>&1
"$2/src/edgewise" run "$dir/net.ewe" "$image" --top 5 2>/dev/null | awk '/class/ { print $2, $NF }' >"$dir/want"
"$2/examples/classify" "$dir/net.ewe" "$image" | awk '{ print $4, $NF }' >"$dir/got"
if [ "$(wc -l <"$dir/got")" -eq 5 ] && diff "$dir/want" "$dir/got"; then
    echo "ok example classify"
else
    echo "FAIL example classify"
    exit 1
fi
if "$2/examples/classify" "$image" "$image" 2>"$dir/err" || ! grep -q 'not an engine file' "$dir/err"; then
    echo "FAIL example classify refuses what is no engine"
    exit 1
fi
echo "ok example classify refuses what is no engine"

# Two black NV12 frames of 28 x 28: the camera's loop gives the same result for both.
"$2/src/edgewise" compile lenet5-mnist -o "$dir/digits.ewe" >/dev/null 2>&1
for _ in 1 2; do
    head -c 784 /dev/zero | tr '\0' '\020'
    head -c 392 /dev/zero | tr '\0' '\200'
done >"$dir/frames"
"$2/examples/camera" "$dir/digits.ewe" 28 28 <"$dir/frames" >"$dir/seen"
if [ "$(wc -l <"$dir/seen")" -eq 2 ] && [ "$(sed 's/.*: //; s/,.*//' "$dir/seen" | uniq | wc -l)" -eq 1 ]; then
    echo "ok example camera"
else
    echo "FAIL example camera"
    cat "$dir/seen"
    exit 1
fi

# Training an int8 engine through the public headers; the program runs the result.
"$2/examples/train" lenet5 synthetic:train=320,test=64 2 "$dir/learnt.ewe" >"$dir/said"
if grep -q '^int8: accuracy' "$dir/said" && "$2/src/edgewise" info "$dir/learnt.ewe" 2>/dev/null | grep -q int8; then
    echo "ok example train"
else
    echo "FAIL example train"
    cat "$dir/said"
    exit 1
fi
if "$2/examples/train" lenet5 no-such-set 1 "$dir/x.ewe" 2>"$dir/err" || ! grep -q 'no-such-set' "$dir/err"; then
    echo "FAIL example train names the data set that is not there"
    exit 1
fi
echo "ok example train names the data set that is not there"

# Pruning alternating with training through the public headers.
"$2/examples/shrink" lenet5 synthetic:train=320,test=64 0.5 "$dir/small.onnx" >"$dir/said"
if grep -qE '^MACs: [0-9]+ -> [0-9]+' "$dir/said" && [ "$(grep -c ': accuracy' "$dir/said")" -eq 3 ] && [ -s "$dir/small.onnx" ]; then
    echo "ok example shrink"
else
    echo "FAIL example shrink"
    cat "$dir/said"
    exit 1
fi

# Results that the program measured, read through the public headers.
"$2/src/edgewise" bench lenet5 --quick --threads 1 --db "$dir/results.db" >/dev/null 2>&1
if "$2/examples/results" "$dir/results.db" | grep -qE '^lenet5: [0-9.]+ ms$'; then
    echo "ok example results"
else
    echo "FAIL example results"
    exit 1
fi

# A power meter that reports 5 W; and the sensors of this machine, or the reasons why there are none.
"$2/examples/energy" "$dir/learnt.ewe" 0.5 'while :; do echo 5.0; sleep 0.02; done' >"$dir/said"
"$2/examples/energy" "$dir/learnt.ewe" 0.2 >>"$dir/said"
if grep -q ', 5.00 W of' "$dir/said" && [ "$(grep -c '^energy: ' "$dir/said")" -eq 2 ] && grep -q '^device cpu: ' "$dir/said"; then
    echo "ok example energy"
else
    echo "FAIL example energy"
    cat "$dir/said"
    exit 1
fi
