# A network agrees with itself; another precision differs, and the first differing value is named.
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
# A layer that only one side has folded its batch norm into is not compared: the values after it are.
edgewise quantize resnet9-cifar10 --calib synthetic:kind=shapes,train=16,test=4 --no-time --no-equalize -o nine.onnx >/dev/null 2>&1
edgewise compare resnet9-cifar10 nine.onnx --layers --all --data synthetic:kind=shapes,train=16,test=4 --min-sqnr 15 | grep -E '^(relu|prep.conv|they) ' | sed 's/  .*//'
# Regression: of a node with several outputs each was compared with the last one of the other network.
edgewise export shufflenet_v2_x0_5 --input 32x32x3 --classes 10 -o shuffle.onnx >/dev/null 2>&1
edgewise compare shuffle.onnx shuffle.onnx --layers --gate 2>/dev/null | tail -n 1
# The requested number of images, also if it is all of them or more than exist.
edgewise data make --kind digits --train 10 --test 40 --to digits >/dev/null 2>&1
for n in digits digits:5 digits:40 digits:50; do edgewise compare lenet5-mnist same.onnx --data $n | grep -o '^[0-9]* inputs'; done
# Comparison with saved values: the output as a file, values in a folder; tensors are [N, C, H, W].
{
    printf '\223NUMPY\001\000v\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }"
    head -c 3136 /dev/zero | tr '\0' '>' # 0.186 each
} >x.npy
edgewise run lenet5-mnist --input x.npy -o y.npy >/dev/null 2>&1
edgewise compare lenet5-mnist y.npy --input x.npy | tail -n 2
edgewise compare a.onnx y.npy --input x.npy 2>/dev/null | tail -n 1 | sed 's/, .*//'
mkdir saved && cp y.npy "saved/$(edgewise compare lenet5-mnist y.npy --input x.npy --json | sed -n 's/.*"name": "\(.*\)",/\1/p').npy"
edgewise compare lenet5-mnist saved --input x.npy | tail -n 2
cp x.npy saved/conv1.npy
edgewise compare lenet5-mnist saved --input x.npy 2>&1 || echo "exit $?"
edgewise compare lenet5-mnist y.npy 2>&1 || echo "exit $?"
edgewise compare lenet5-mnist same.onnx --input x.npy 2>&1 || echo "exit $?"
# Files are channels-first: each element here has a different value.
{
    printf '\223NUMPY\001\000v\000'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 32, 32), }"
    for byte in '>' '?' '\0'; do head -c 4096 /dev/zero | tr '\0' "$byte"; done
} >rgb.npy
edgewise run resnet9-cifar10 --input rgb.npy -o scores.npy >/dev/null 2>&1
edgewise compare resnet9-cifar10 scores.npy --input rgb.npy --gate | tail -n 1
# --save writes such a folder, with which the same network agrees.
edgewise compare resnet9-cifar10 values --input rgb.npy --save 2>&1
ls values | wc -l
edgewise compare resnet9-cifar10 values --input rgb.npy --layers --gate | tail -n 1
head -c 128 values/prep.conv.npy | tail -c +11 | tr -s ' '
edgewise compare resnet9-cifar10 values --save 2>&1 || echo "exit $?"
sed 's|relu_4|relu/2|g' same.onnx >clash.onnx
edgewise compare clash.onnx clash --input x.npy --save 2>&1 || echo "exit $?"
edgewise compare resnet9-cifar10 rgb.npy/no --input rgb.npy --save 2>&1 || echo "exit $?"
# For scripts: the same output, and exit status 1 on a difference.
edgewise export lenet5 --seed 1 -o one.onnx >/dev/null 2>&1
edgewise export lenet5 --seed 2 -o two.onnx >/dev/null 2>&1
edgewise compare one.onnx one.onnx --gate | tail -n 1
edgewise compare one.onnx two.onnx | tail -n 1 | cut -d , -f 1
edgewise compare one.onnx two.onnx --gate 2>&1 >/dev/null | sed 's/ -*[0-9.]* dB is/ N dB is/' || true
edgewise compare one.onnx two.onnx --gate >/dev/null 2>&1 || echo "exit $?"
