#!/usr/bin/env bash
# Inputs as tensors, images and random numbers; outputs as classes, statistics and files.
edgewise export lenet5 -o lenet5.onnx 2>/dev/null
edgewise run lenet5.onnx --random --top 2 2>/dev/null
edgewise run lenet5.onnx --random --top 0 2>/dev/null | head -n 1
edgewise run lenet5.onnx --random --output y.npy >/dev/null 2>&1
edgewise run lenet5.onnx --random --output y.pb >/dev/null 2>&1
ls
printf 'zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n' >names
edgewise run lenet5.onnx "$CASES/../fuzz/corpus/image/grey.png" --top 1 --labels names --mean 0 --std 1 2>/dev/null |
    grep -cE 'class +[0-9] .* (zero|one|two|three|four|five|six|seven|eight|nine)$'
edgewise run lenet5.onnx --input "$CASES/../fuzz/corpus/image/rgb.jpg" --mean 0 --std 1 --json 2>/dev/null | grep -c '"class"'
# Preprocessing is printed; unknown preprocessing must be given.
edgewise run lenet5.onnx "$CASES/../fuzz/corpus/image/rgb.jpg" --mean 0.5 --std 0.5 2>&1 >/dev/null |
    sed -n 's/.*rgb.jpg: //p'
edgewise run lenet5.onnx "$CASES/../fuzz/corpus/image/rgb.jpg" 2>&1 || true
edgewise run lenet5.onnx "$CASES/../fuzz/corpus/image/rgb.jpg" --scale 1 --resize 40 2>&1 >/dev/null |
    sed -n 's/.*rgb.jpg: //p'
# The engine stores the factor of --scale; eval has it too.
edgewise compile lenet5.onnx -o s.ewe --scale 1 --mean 127.5 --std 127.5 >/dev/null 2>&1
edgewise run s.ewe "$CASES/../fuzz/corpus/image/rgb.jpg" 2>&1 >/dev/null | sed -n 's/.*rgb.jpg: //p'
edgewise eval lenet5.onnx --data synthetic:40 --scale 1 --mean 127.5 --std 127.5 --json 2>/dev/null | grep '"loss"' >a
edgewise eval lenet5.onnx --data synthetic:40 --mean 0.5 --std 0.5 --json 2>/dev/null | grep '"loss"' | diff a - && wc -l <a
