#!/usr/bin/env bash
# Networks that cannot be shown: the reason in one line, and what to do.
try() { edgewise info "$@" && echo "passed: $*"; echo "$?"; }
try resnet5
try vgg11_cifar --width 0.01
try alexnet --input 16
try lenet5 --classes 0
try lenet5 --input 1x2x3x4
mkdir run pictures
touch run/best.ckpt
try run
try pictures
try nothing.onnx
try nothing.onnx --width 0.5
try lenet5 --svg /nowhere/lenet5.svg
try
