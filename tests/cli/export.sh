#!/usr/bin/env bash
# Export and import: the same results.
edgewise export lenet5 -o lenet5.onnx --seed 3
edgewise export lenet5 -o fixed.onnx --batch 4 --seed 3 --json 2>/dev/null | grep -v bytes
edgewise run lenet5 --random --seed 3 >a 2>/dev/null
edgewise run lenet5.onnx --random --seed 3 >b 2>/dev/null
diff a b
edgewise info lenet5.onnx --batch 2 | grep -E '^(lenet5|parameters)'
edgewise info fixed.onnx --batch 2 2>&1 || true
edgewise export fixed.onnx -o again.onnx --json 2>/dev/null | grep batch
# Weights in an external file, and batch norm folded.
edgewise export resnet18 --input 32x32x3 --classes 10 --max-bytes 1M --fold -o small.onnx >/dev/null 2>&1
ls
edgewise info small.onnx | grep -cE ' batch_norm ' || true
mv small.onnx.data elsewhere
edgewise run small.onnx --random 2>&1 || echo "exit $?"
