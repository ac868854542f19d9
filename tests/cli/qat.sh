#!/usr/bin/env bash
# Quantisation-aware training: from a trained network to a QDQ file; and errors.
data=synthetic:train=320,test=100
edgewise train lenet5 --data $data --epochs 1 --batch 16 --threads 1 -o float >/dev/null 2>&1
edgewise train float/best.ckpt --qat int8 --calib 64 --data $data --epochs 1 --batch 16 --lr 0.001 \
    --threads 1 -o int8 >/dev/null 2>&1
edgewise train float/best.ckpt --qat pow2 --calib 64 --data $data --epochs 2 --batch 16 --lr 0.001 \
    --threads 1 -o pow2 >/dev/null 2>&1
ls int8/int8.onnx pow2/int8.onnx
# The same quantisers as post-training quantisation inserts, and the same accuracy in every form.
operators() { edgewise info "$1" | awk '{ print $2 }' | sort | uniq -c; }
edgewise quantize float/best.ckpt --calib $data:64 --no-time --min-sqnr -100 -o post.onnx >/dev/null 2>&1
diff <(operators post.onnx) <(operators int8/int8.onnx) && echo "same operators"
accuracy() { edgewise eval "$1" --data $data --json | grep -m 1 '"accuracy"'; }
edgewise export int8/best.ckpt -o exported.onnx >/dev/null 2>&1
[ "$(accuracy int8/best.ckpt)" = "$(accuracy int8/int8.onnx)" ] && [ "$(accuracy exported.onnx)" = "$(accuracy int8/int8.onnx)" ] && echo "same accuracy"
# Regression: checkpoints lacked the binary positions of weights: their integers were per channel then, and differed
# from the network that training had evaluated.
edgewise quantize float/best.ckpt --scheme pow2 --calib $data:64 --no-time --min-sqnr -100 -o post2.onnx >/dev/null 2>&1
weights() { edgewise info "$1" | grep '^parameters'; } # without biases, which are of 8 bits at powers of two
[ "$(weights post2.onnx)" = "$(weights pow2/int8.onnx)" ] && echo "powers of two in files"
tested() { grep -o '"test_accuracy": [0-9.]*' "$1/result.json" | grep -o '[0-9.]*$'; }
[ "$(tested pow2)" = "$(accuracy pow2/int8.onnx | grep -o '[0-9.]*,$' | tr -d ,)" ] && echo "as tested"
# A stopped run is resumed.
{ edgewise train --resume pow2 --epochs 3 >/dev/null; } 2>&1 | grep -c 'epoch   3'

edgewise train lenet5 --qat int8 --data $data 2>&1 || true
edgewise train float/best.ckpt --qat int4 --data $data 2>&1 || true
edgewise train int8/int8.onnx --qat int8 --data $data 2>&1 || true
edgewise train float/best.ckpt --qat int8 --data synthetic:classes=7 2>&1 || true
edgewise train float/best.ckpt --qat int8 --data $data --classes 10 2>&1 || true
edgewise train float/best.ckpt --data $data --calib 10 2>&1 || true
edgewise train float/best.ckpt --data $data --teach-share 0.3 2>&1 || true
edgewise train float/best.ckpt --data $data --temperature 3 2>&1 || true
# Errors before any measurement.
edgewise train float/best.ckpt --qat int8 --data $data --teach nowhere.onnx 2>&1 || true
edgewise train float/best.ckpt --qat int8 --data $data --batch 500 2>&1 || true
edgewise train float/best.ckpt --qat int8 --data $data -o float 2>&1 || true
