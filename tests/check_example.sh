#!/usr/bin/env bash
# The examples run, and say the same as the program.
# usage: check_example.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
image=$1/tests/fuzz/corpus/image/rgb.jpg
printf 'zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n' >"$dir/names"
"$2/src/edgewise" compile lenet5 -o "$dir/net.ewe" --mean 0.5 --std 0.25 --labels "$dir/names" >/dev/null 2>&1
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

# Two black NV12 frames of 28 x 28: the camera's loop says the same of both.
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
