# The same network agrees with itself; another precision differs, and the first value that does is named.
edgewise export lenet5-mnist -o same.onnx >/dev/null
edgewise compare lenet5-mnist same.onnx | tail -n 1
edgewise compare lenet5-mnist same.onnx --layers --all --threads 1 | sed -n '/^[a-z_0-9]* /{s/ .*//;p}' | tr '\n' ' '
echo
edgewise quantize lenet5-mnist --calib synthetic:64 --no-time --no-equalize --no-correct-bias --min-sqnr -100 -o int8.onnx >/dev/null 2>&1
edgewise compare lenet5-mnist int8.onnx --layers --data synthetic:8 --min-sqnr 100 | tail -n 1 | sed 's/, .*//'
edgewise compare lenet5-mnist int8.onnx --data synthetic:8 --json | grep -cE '"sqnr_db": [12345][0-9]'
# Other weights differ from the first layer on.
edgewise export lenet5 --seed 1 -o a.onnx >/dev/null 2>&1
edgewise compare a.onnx lenet5-mnist --layers 2>/dev/null | tail -n 1 | sed 's/, .*//'
edgewise compare lenet5-mnist resnet9-cifar10 2>&1 || echo "exit $?"
edgewise compare lenet5-mnist same.onnx --all 2>&1 || echo "exit $?"
# As many images as asked for, also where that is all of them or more than there are.
edgewise data make --kind digits --train 10 --test 40 --to digits >/dev/null 2>&1
for n in digits digits:5 digits:40 digits:50; do edgewise compare lenet5-mnist same.onnx --data $n | grep -o '^[0-9]* inputs'; done
