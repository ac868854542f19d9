#!/usr/bin/env bash
# Export for FPGA tools: QDQ and QCDQ with power-of-two scales, XIR; all give the same bits.
data=synthetic:train=320,test=100
edgewise train lenet5 --data $data --epochs 1 --batch 16 --threads 1 -o float >/dev/null 2>&1
edgewise quantize float/best.ckpt --scheme pow2 --calib $data:64 -o dpu.onnx >/dev/null 2>&1
edgewise export dpu.onnx --qdq pow2 -o pow2.onnx | sed 's/ [0-9.]* KiB/ SIZE/'
edgewise export dpu.onnx --qdq qcdq -o qcdq.onnx | sed 's/ [0-9.]* KiB/ SIZE/'
edgewise export dpu.onnx -o dpu.xmodel | sed 's/ [0-9.]* KiB/ SIZE/'
edgewise info qcdq.onnx | awk '$2 == "clip"' | wc -l
edgewise info dpu.xmodel | grep -E '^(dpu|MACs)' | sed 's/  */ /g'
score() { edgewise eval "$1" --data $data --device dpu --json 2>/dev/null | grep -m 2 -E '"(accuracy|loss)"'; }
score dpu.onnx >want
for file in pow2.onnx qcdq.onnx dpu.xmodel; do score $file | diff want - && echo "$file: the same"; done
edgewise export dpu.xmodel -o again.xmodel >/dev/null && score again.xmodel | diff want - && echo "twice: the same"
# Scales other than powers of two are refused.
edgewise quantize float/best.ckpt --no-time --calib $data:64 -o int8.onnx >/dev/null 2>&1
edgewise export int8.onnx --qdq pow2 -o no.onnx 2>&1 | cut -c 1-60
edgewise export float/best.ckpt -o no.xmodel 2>&1 || true
edgewise export dpu.onnx --qdq qcdq -o no.xmodel 2>&1 || true
ls no.* 2>/dev/null || true
# Layers on the DPU and on the host, with reasons.
edgewise compile dpu.onnx --device dpu:B4096 -o dpu.ewe 2>/dev/null | sed -n '4,$p' | sed 's/ *$//; s/_[0-9][0-9]*\b/_N/g; s/  */ /g'
edgewise compile float/best.ckpt --device dpu:B4096 -o host.ewe 2>/dev/null | tail -1
# The scaling study's protocol on trained networks.
edgewise bench float/best.ckpt --protocol scale --device dpu --eval $data --json 2>/dev/null | grep -E '"(calibration_images|test_images|params)"'
edgewise bench --protocol scale --device dpu --eval $data 2>&1 | head -1
edgewise bench lenet5 --protocol scale --device dpu --eval $data 2>&1 | head -1
