#!/usr/bin/env bash
# One clear line for each possible error.
try() {
    echo "-- $*"
    edgewise "$@" 2>&1 || echo "exit $?"
}
edgewise export lenet5 -o lenet5.onnx 2>/dev/null
edgewise run lenet5.onnx --random --output y.npy >/dev/null 2>&1
try run lenet5.onnx
try run lenet5.onnx --random --input y.npy
try run lenet5.onnx --input nowhere.npy
try run lenet5.onnx --input y.npy
try run lenet5.onnx --input image=y.npy
try run lenet5.onnx --random --output y.txt
try run lenet5.onnx --random --mean red
try run lenet6 --random
try run nowhere.onnx --random
head -c 20000 lenet5.onnx >short.onnx
try run short.onnx --random
try info short.onnx
echo hello >text.onnx
try run text.onnx --random
try export lenet5
try export lenet5 -o nowhere/x.onnx
try export text.onnx -o x.onnx
try run "$CASES/../../docs/pictures/three.png" lenet5.onnx
