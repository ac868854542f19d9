#!/usr/bin/env bash
# Generating, packing, showing and timing data sets; getting one from files, completely or not at all.
export XDG_CACHE_HOME=$PWD/cache EW_LOG=warn
edgewise data list | sed 's/ *$//'
edgewise data make --kind shapes --train 40 --test 20 --side 16 --to shapes
edgewise data info shapes --sheet sheet.png | sed 's/ \(on disk\|in memory\).*//' | grep -v -e 'on disk' -e 'in memory'
head -c 4 sheet.png | tail -c 3
echo
edgewise data pack shapes --to shapes.ewpack | sed 's/, .*//'
edgewise data info shapes.ewpack --json | grep -v -e resident -e bytes -e ' 0\.'
edgewise data make --format idx --train 40 --test 20 --to digits --json
edgewise data bench digits --epochs 1 --workers 2 --augment crop=2,rotate=5 --json | grep -e samples\" -e ops -e emulated
edgewise data bench digits --epochs 1 --storage 50,0.01 | tail -n 1
fails() { edgewise data "$@" && echo "did not fail" || echo "exit $?"; }
fails info cifar10 2>&1
fails get mnist --from digits 2>&1
fails make --to shapes 2>&1
fails bench shapes --augment crup=4 2>&1
fails bench shapes --storage floppy 2>&1
fails pack shapes 2>&1
fails get 2>&1
fails fetch mnist 2>&1
printf 'no image' >shapes/train/disc/000000.png
fails bench shapes --epochs 1 2>&1
edgewise data bench shapes --epochs 1 --on-bad-sample skip 2>&1 | grep -v -e seconds -e '^ *1 '
find cache -name '.*' -print 2>/dev/null | sort
# A truncated file is named, whichever command detects it; a missing set gives a hint.
head -c 100 shapes/train/ring/000001.png >cut.png
mv cut.png shapes/train/ring/000001.png
edgewise data bench shapes --on-bad-sample skip --epochs 1 --workers 0 2>&1 >/dev/null | grep -o 'ring/000001.png: .*'
edgewise data info shapes 2>&1 >/dev/null | grep -o 'ring/000001.png: .*'
fails info mnits 2>&1
fails info nothing-like-it 2>&1
edgewise data info synthetic --split test | grep '^from'
edgewise data get mnst 2>&1 || true
edgewise train lenet5 --data nowhere:100 2>&1 | tail -n 1
# Clips of moving shapes as video files, if the build can write them.
if edgewise data make --kind motion --classes 2 --train 4 --test 2 --to moving >made 2>&1; then
    find moving -name '*.mp4' | wc -l
    edgewise data info clips:path=moving,size=28 | grep -E '^(train|test|clips)'
else
    grep -q EW_FFMPEG made && printf '6\ntrain      4\ntest       2\nclips      16x28x28x3\n'
fi
edgewise data make --kind motion --format idx --train 4 --test 2 --to no 2>&1 || true
edgewise data make --kind motion --side 27 --train 4 --test 2 --to no 2>&1 | sed 's|: .*: sides|: sides|' || true
[ ! -e no ]
