#!/usr/bin/env bash
# Names of classes, untrained weights, and the time budget of a camera's rate.
edgewise export squeezenet1_1 --input 64x64x3 -o net.onnx 2>&1 | grep -o 'and the file says so'
edgewise run net.onnx --random --top 1 2>&1 >/dev/null | grep -o 'warning: .*'
edgewise run net.onnx --random --top 1 --class-names imagenet 2>/dev/null | grep -cE 'class +[0-9]+ .* [a-z]+$'
printf 'zero\none\n' >two
edgewise run net.onnx --random --labels two 2>&1 >/dev/null | grep -v warning || true
seq 1001 >many
edgewise compile net.onnx --labels two -o net.ewe 2>&1 | grep names
edgewise compile net.onnx --labels many -o net.ewe 2>&1 | grep names
cp "$CASES/../fuzz/corpus/image/rgb.jpg" a.jpg
edgewise run lenet5 a.jpg --mean 0 --std 1 --fps 20 --json 2>/dev/null | grep budget_ms
edgewise run lenet5 a.jpg --mean 0 --std 1 --fps 20 --budget 3 --json 2>/dev/null | grep budget_ms
# No warning for trained weights.
edgewise export lenet5 -o l.onnx >/dev/null 2>&1
edgewise train l.onnx --data synthetic:train=32,test=8 --batch 8 --epochs 1 -o run >/dev/null 2>&1
edgewise run run/best.ckpt --random 2>&1 >/dev/null | grep -c 'random weights' || true
# A meter that cannot be started is an error, and not ignored.
edgewise monitor --power-from 'no-such-meter --fast' -n 1 2>&1 || echo "status $?"
