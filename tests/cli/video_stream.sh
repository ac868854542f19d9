# Video streams: raw frames, a file in real time, and a clip with the classes drawn into it.
edgewise export c3d_small --width 0.1 -o c3d.onnx >/dev/null 2>&1
net="c3d.onnx --mean 0 --std 1 --threads 1"
numbers() { grep -E '"(frames|dropped|window|hop|answers|frame|size_changes)"' | tr -d ' \n'; echo; }
head -c $((28 * 28 * 3 * 20 + 100)) /dev/zero | edgewise run $net - --hop 2 --json 2>err | numbers
grep -o 'the last frame has 100 of 2352 bytes' err
grep -o 'raw RGB, a byte each, 28 wide and 28 high; 16 frames, each resized to cover 28x28' err
# raw frames have no timestamps: 25 per second are assumed
head -c $((28 * 28 * 3 * 26)) /dev/zero | edgewise run $net - --window 1 --hop 25 2>/dev/null | grep -oE '^ +[0-9.]+ s  frame +[0-9]+'
head -c $((28 * 28 * 3 * 5)) /dev/zero | edgewise run $net - --window 8 --hop 4 --json 2>/dev/null | numbers
head -c $((28 * 28 * 3 * 20)) /dev/zero | edgewise run $net - --hop 2 --live page.db >/dev/null 2>&1
grep -oE '"(ended|frames|dropped|answers)":[a-z0-9]+|"picture":"data:image/png;base64,iVBOR' page.db-video | tr '\n' ' '
grep -o '"latency_ms"' page.db-video | wc -l
edgewise run $net - --hop 2 </dev/null 2>&1 | grep -v random || true
edgewise run $net x.mp4 y.mp4 --hop 2 2>&1 | grep -v random || true
clip=$CASES/../fixtures/clips/left/a.mp4
if edgewise run $net $clip --hop 4 --json >out 2>err; then
    numbers <out
    edgewise run $net $clip --annotate noted.mp4 >/dev/null 2>&1
    # With standard output closed, messages do not end up in the file; a file is replaced only when it is complete.
    ln noted.mp4 before.mp4
    edgewise run $net $clip --annotate noted.mp4 >&- 2>/dev/null || cmp noted.mp4 before.mp4
    [ ! noted.mp4 -ef before.mp4 ] || echo "written in place"
    edgewise run $net noted.mp4 --hop 1 --json 2>/dev/null | numbers
    edgewise run $net $clip --hop 2 --json >kept 2>/dev/null
    grep -c computed_share kept
    edgewise run $net $clip --hop 2 --json --memory-limit 1000000000 >whole 2>/dev/null
    diff <(grep -E '"(class|frame)"' kept) <(grep -E '"(class|frame)"' whole) && echo same answers
    edgewise run $net $clip --hop 1 --sheet sheet.png --json 2>/dev/null | grep -c '"frame"' | sed 's/^/sheet of /'
    file_is_png() { head -c 4 "$1" | tail -c 3 | grep -q PNG; }
    file_is_png sheet.png
    head -c 100 $clip >cut.mp4
    edgewise run $net cut.mp4 --hop 4 2>&1 | grep -o 'cut.mp4: no video file' || true
    # No server listens there: the system's reason is printed.
    edgewise run $net rtsp://127.0.0.1:9/x --hop 4 2>&1 | grep -o 'cannot be opened: .*' || true
else
    cat err >&2
    exit 77
fi
