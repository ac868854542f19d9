#!/usr/bin/env bash
# Scores, and the confusion matrix as text, CSV and PNG; mistakes are named.
export XDG_CACHE_HOME=$PWD
edgewise train lenet5 --data synthetic --epochs 1 --batch 16 --lr 0.02 -o run --json 2>/dev/null >result
edgewise eval run/best.ckpt --data synthetic --csv m.csv --png m.png --json >eval.json
accuracy() { sed -n "s/.*\"$1\": \([0-9.e-]*\),*/\1/p" "$2" | head -n 1; }
[ "$(accuracy test_accuracy result)" = "$(accuracy accuracy eval.json)" ] || echo "train and eval differ"
[ "$(accuracy test_f1 result)" = "$(accuracy f1 eval.json)" ] || echo "F1 differs"
wc -l <m.csv
head -n 1 m.csv
head -c 4 m.png | tail -c 3 && echo
edgewise eval run/best.ckpt --data synthetic:37 | grep -c '^ *[0-9]* .* [01]\.[0-9]'
edgewise eval run/best.ckpt --data synthetic | grep -E '^(lenet5|class)'
edgewise eval run/best.ckpt || true
edgewise export lenet5 -o net.onnx >/dev/null 2>&1
edgewise eval net.onnx --data synthetic || true
edgewise eval run/best.ckpt --data nowhere || true
