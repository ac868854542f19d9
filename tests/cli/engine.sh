#!/usr/bin/env bash
# Engines: compiled, reproducible, run on tensors, images, folders and streams, and refused.
exec 2>&1
edgewise compile lenet5 -o a.ewe --mean 0 --std 1 --batch 1-4 --threads 1 2>/dev/null | sed 's/, for .*//; s/^file .*/sizes/'
edgewise compile lenet5 -o b.ewe --mean 0 --std 1 --batch 1-4 --threads 1 --json 2>/dev/null | grep -cE '"(bytes|packed_bytes|activation_bytes|seconds)": [0-9]'
cmp a.ewe b.ewe
edgewise run lenet5 --random --output want.npy >/dev/null 2>&1
edgewise run a.ewe --random --output got.npy >/dev/null 2>&1
cmp want.npy got.npy
image=$CASES/../fuzz/corpus/image
mkdir images
cp "$image/grey.png" "$image/rgb.jpg" images
echo text >images/notes.txt
edgewise run a.ewe images/grey.png --top 1 2>/dev/null | sed 's/ [0-9.]* %.*//'
edgewise run a.ewe images --budget 17 | sed -E 's/class +[0-9]/class N/; s/ +/ /g; s/[0-9.]+ (ms|%)/T \1/g; s/(p99|max) [0-9.]+/\1 T/g; s/: [0-9]+ of 2 missed .*/: M of 2 missed/'
# Without a budget there are no deadlines; -o FILE.csv has the classes of every image.
edgewise run a.ewe images --top 2 -o classes.csv 2>&1 | grep -cE 'deadline|class' || true
sed -E "s/[0-9]+\\.[0-9]+(e-[0-9]+)?/N/g; s/,[0-9],/,K,/g" classes.csv
edgewise run a.ewe images -o classes.npy || echo "status $?"
# A damaged image is named and left out, the others are written, and the status says so; hidden files are no images.
cp -r images some
head -c 100 "$CASES/../fuzz/corpus/image/rgb.jpg" >some/0.jpg
cp some/0.jpg some/._a.jpg
edgewise run a.ewe some -o some.csv 2>&1 | grep -E '^(warning|edgewise)' || true
wc -l <some.csv
edgewise run a.ewe some --json 2>/dev/null | grep unreadable || true
rm some/[a-z]*
edgewise run a.ewe some 2>&1 | grep ^edgewise || true
edgewise run a.ewe --random -o classes.csv || echo "status $?"
edgewise run a.ewe images --fps 9 -o classes.csv || echo "status $?"
printf 'images/grey.png\n' | edgewise run a.ewe - --json | grep -cE '"(class|read_ms|run_ms|missed|budget_ms)"'
edgewise run a.ewe images --fps 200 --seconds 0.1 --budget 1000 --json | grep -E '"(frames|fps|budget_ms)"'
edgewise info a.ewe | grep -vE '^(file|packed|activations|kernels)' | sed 's/, for .*//'
edgewise info a.ewe --json | grep -E '"(form|precision|params|cdl|channels_last|repacked)"'
# A file with a fixed batch size: its engine, and counts of images, use that size.
edgewise export lenet5 --batch 3 -o fixed.onnx >/dev/null 2>&1
edgewise compile fixed.onnx -o fixed.ewe 2>/dev/null | sed 's/, for .*//; /^file/d'
edgewise bench fixed.ewe --iters 3 --warmup 0 2>/dev/null | head -n 1 | cut -d, -f 1-3
# Errors are one line.
edgewise export a.ewe -o a.onnx || echo "status $?"
edgewise run a.ewe --random --reference || echo "status $?"
edgewise compile lenet5 || echo "status $?"
edgewise compile lenet5 -o x.ewe --batch 4-2 || echo "status $?"
edgewise compile lenet5 -o x.ewe --precision int8 2>&1 | tail -n 2
edgewise compile lenet5 -o x.ewe --precision fp32 --calib synthetic || echo "status $?"
edgewise compile lenet5 -o x.ewe --calib synthetic || echo "status $?"
# Quantised while compiling.
edgewise export lenet5 -o l.onnx >/dev/null 2>&1
edgewise compile l.onnx -o q.ewe --precision int8 --mean 0.5 --std 0.5 \
    --calib synthetic:kind=digits,size=32,channels=1:8 2>/dev/null | head -n 1 | sed 's/, for .*//'
head -c 6000 a.ewe >cut.ewe
edgewise run cut.ewe --random || true
edgewise run a.ewe images/notes.txt || echo "status $?"
mkdir empty
edgewise run a.ewe empty || echo "status $?"
