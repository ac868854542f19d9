# Networks for video: their sizes, training on clips, and invalid combinations.
edgewise info r2plus1d_18 | grep -E '^(parameters|MACs)'
edgewise export c3d_small --width 0.1 -o c3d.onnx
edgewise info c3d.onnx | grep -o 'input 1x3x16x28x28'
few="--width 0.2 --epochs 1 --batch 8 --threads 1"
edgewise train c3d_small $few --data synthetic:kind=motion,train=24,test=16,classes=2 -o run >/dev/null 2>&1
edgewise eval run/best.ckpt --data synthetic:kind=motion,train=8,test=16,classes=2 | grep -o '(test), 16 clips'
edgewise bench run/best.ckpt --iters 1 --warmup 0 --json 2>/dev/null | grep -c '"median_ms"'
if edgewise run run/best.ckpt "$CASES/../fixtures/clips/left/a.mp4" >out 2>&1; then grep -c 'class ' out; else grep -q FFMPEG out && echo 2; fi
edgewise train c3d_small $few --data synthetic:train=48,test=16 2>&1 || true
edgewise train lenet5 --epochs 1 --batch 8 --data synthetic:kind=motion,train=24,test=16 2>&1 || true
edgewise train c3d_small $few --data synthetic:kind=motion,train=24,test=16 --augment crop=2,flip,time -o augmented >/dev/null 2>&1 && echo augmented
edgewise train lenet5 --epochs 1 --batch 8 --data synthetic:train=48,test=16 --augment time 2>&1 || true
edgewise quantize run/best.ckpt --calib synthetic:kind=motion,train=16,test=8,classes=2 --no-time -o int8.onnx >/dev/null 2>&1
edgewise bench int8.onnx --iters 1 --warmup 0 --threads 1 --profile 2>/dev/null | grep -c 'conv .*int8'
edgewise prune run/best.ckpt --data synthetic:kind=motion,train=16,test=8,classes=2 --macs 50% --epochs 1 --batch 8 --threads 1 -o small.onnx >/dev/null 2>&1 && echo pruned
edgewise data info synthetic:kind=motion,train=8,test=8 | grep '^clips '
edgewise data info synthetic:kind=motion,classes=9 2>&1 || true
