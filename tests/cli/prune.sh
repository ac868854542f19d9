#!/usr/bin/env bash
# Removing channels, targets, and errors before any work.
try() { { edgewise prune "$@" >/dev/null && echo "passed: $*"; } 2>&1 || true; }

counts() { grep -E '"(params|macs)(_before)?"'; }
edgewise prune lenet5 --keep 0.5 -o half.onnx --json | counts
edgewise info half.onnx --json | grep '"params"'
edgewise prune resnet9-cifar10 --macs 50% --global --importance bn --align 8 -o resnet.onnx --json | counts
edgewise prune shufflenet_v2_x0_5 --params 1e6 --importance random -o shuffle.onnx --json | counts
# Two pruning steps with training in between, by the Taylor criterion.
edgewise prune lenet5 --macs 60% --importance taylor --score-batches 2 --data synthetic:train=320,test=64 \
    --mean 0 --std 1 --steps 2 --epochs 1 --batch 16 --threads 1 -o learnt.onnx --json 2>log | counts
grep -c '^cut' log
grep -c '^epoch' log
# The result is an ordinary file.
edgewise eval learnt.onnx --mean 0 --std 1 --data synthetic:train=320,test=64 --json | grep -c '"accuracy"'
edgewise compile learnt.onnx -o learnt.ewe >/dev/null

try lenet5 -o x.onnx
try lenet5 --keep 0.5 --macs 10 -o x.onnx
try lenet5 --keep 0.5
try lenet5 --macs 50% --epochs 3 -o x.onnx
try lenet5 --macs 50% --importance taylor -o x.onnx
try lenet5 --macs half -o x.onnx
try lenet5 --latency 5h -o x.onnx
try lenet5 --macs 10 -o x.onnx
try lenet5 --macs 200% -o x.onnx
try resnet9 --macs 200% -o x.onnx
try lenet5 --keep 0.5 --importance bn -o x.onnx
try nowhere.onnx --keep 0.5 -o x.onnx
try lenet5 --keep 0.5 --data synthetic:classes=10 -o x.onnx
try lenet5 --keep 0.5 -o nowhere/x.onnx
try lenet5 --bytes 1kk -o x.onnx
# Regression: these errors appeared only after the first cut, the epochs or all of the work.
train() { try learnt.onnx --keep 0.5 --mean 0 --std 1 --data synthetic:train=320,test=64 --threads 1 "$@"; }
train --epochs 1 -o nowhere/x.onnx
train --epochs 1 -o .
train --epochs 1 --batch 1000 -o x.onnx
train --importance taylor --batch 1000 -o x.onnx
edgewise quantize learnt.onnx --mean 0 --std 1 --calib synthetic:train=320,test=64:16 --no-time --min-sqnr -100 -o int8.onnx >/dev/null 2>&1
try int8.onnx --keep 0.5 -o x.onnx
[ ! -e x.onnx ]
