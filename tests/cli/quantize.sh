# A quantised file is refused; a warning if ranges and accuracy use the same images; sizes before and after.
edgewise data make --kind digits --train 60 --test 1 --to made >/dev/null 2>&1
edgewise export lenet5 -o net.onnx 2>/dev/null
images=(--calib made/train --mean 0.5 --std 0.5 --no-equalize --no-correct-bias --no-time --threads 1)
edgewise quantize net.onnx "${images[@]}" --eval made/train --max-drop 100 -o int8.onnx 2>&1 | grep -E '^(warning|weights)'
edgewise quantize int8.onnx "${images[@]}" -o again.onnx 2>&1 || echo "exit $?"
