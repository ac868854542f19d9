#!/usr/bin/env bash
# A folder with images only calibrates and compares; what needs classes says so.  Names that do not fit.
exec 2>&1
edgewise data make --train 12 --test 4 --to digits >/dev/null
mkdir flat && i=0
for f in digits/train/*/*.png; do cp "$f" flat/$((i += 1)).png; done
echo text >flat/notes.txt
touch flat/13.HEIC flat/._1.png # of a phone; of a Mac's file system
edgewise data info flat 2>&1 | grep -E '^(warning|train|test|unlabelled|classes|images|from)'
rm flat/13.HEIC
edgewise data bench flat --epochs 1 --batch 4 --json | grep samples\"
edgewise data pack flat --to flat.ewpack | sed 's/, .*//'
edgewise data info flat.ewpack --json | grep -E '"(unlabelled|classes)"'
edgewise export lenet5 -o net.onnx >/dev/null 2>&1
edgewise quantize net.onnx --calib flat --mean 0 --std 1 --no-time -o int8.onnx 2>/dev/null | grep -o "ranges from 12 images"
edgewise compile net.onnx --calib flat:5 --mean 0 --std 1 -o int8.ewe 2>&1 | grep -o "layers in int8"
edgewise compare net.onnx int8.onnx --data flat:3 --mean 0 --std 1 --min-sqnr 0 | grep -o '^3 inputs'
for command in "eval int8.onnx --data flat" "quantize net.onnx --calib flat --eval flat --mean 0 --std 1 --no-time -o x.onnx" \
    "train lenet5 --data flat" "prune net.onnx --macs 50% --data flat --epochs 1 --batch 4 -o x.onnx" "data info flat --split train"; do
    # shellcheck disable=SC2086 # words on purpose
    edgewise $command | grep -v random || true
done
# Labels are indices: a class that has another index in the data set is named.
edgewise train lenet5 --data synthetic:kind=shapes,size=16,classes=3,train=32,test=8 --epochs 1 --batch 8 -o run >/dev/null 2>&1
edgewise data make --kind shapes --side 16 --classes 3 --train 9 --test 6 --to shapes >/dev/null
edgewise eval run/best.ckpt --data shapes 2>&1 >/dev/null | grep -c 'by index' || true
rm -r shapes/*/disc
edgewise eval run/best.ckpt --data shapes 2>&1 >/dev/null | grep 'by index'
edgewise info lenet5-mnst || true
edgewise run lenet5 --input 28x28x1 || true
mkdir none
edgewise data info none || true
# A folder of test images alone is evaluated.
mkdir held && cp -r shapes/test held/val
edgewise data info held | grep -E '^(train|test|classes|from)'
edgewise eval run/best.ckpt --data held 2>/dev/null | grep -E 'on held'
