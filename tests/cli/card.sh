#!/usr/bin/env bash
# A checkpoint's preprocessing and classes are kept in ONNX, int8 files and engines.
set=synthetic:kind=shapes,size=16,classes=4,train=256,test=32
edgewise train lenet5 --data $set --epochs 6 --batch 16 --lr 0.05 --val-split 0 -o run >/dev/null 2>&1
edgewise export run/best.ckpt -o net.onnx >/dev/null
edgewise quantize run/best.ckpt --calib $set --no-time -o int8.onnx >/dev/null 2>&1
edgewise compile int8.onnx -o int8.ewe >/dev/null 2>&1
edgewise data make --kind shapes --side 16 --classes 4 --train 8 --test 4 --seed 7 --to images >/dev/null
for net in run/best.ckpt net.onnx int8.onnx int8.ewe; do
    edgewise run $net images/test/disc/*.png images/test/square/*.png | sed -n 's/.* ms  \([a-z]*\)$/\1/p' | tr '\n' ' '
    edgewise run $net images/test/disc/*.png --json | grep -m 1 -o '"label": .*'
done
edgewise eval run/best.ckpt --data $set | grep accuracy >a
edgewise eval net.onnx --data $set | grep accuracy | diff a -
edgewise bench run/best.ckpt int8.onnx int8.ewe --iters 2 --warmup 0 --power-seconds 0 --eval $set | grep -c accuracy
edgewise run net.onnx images/test/disc/*.png x.npy 2>&1 || true
edgewise run nowhere.ewe images/test/disc/*.png 2>&1 || true
cp images/test/disc/*.png picture.ewe
edgewise run picture.ewe picture.ewe 2>&1 || true
edgewise eval nowhere.ckpt --data $set 2>&1 || true
