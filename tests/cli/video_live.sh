# once: it waits for a camera, which sanitizers need not see twice
# An RTSP camera that disappears and returns with another frame size, a file whose frame size changes, and raw frames
# that pause.
command -v python3 >/dev/null || {
    echo "no python3 for an RTSP server"
    exit 77
}
edgewise export c3d_small --width 0.1 -o c3d.onnx >/dev/null 2>&1
net="c3d.onnx --mean 0 --std 1 --threads 1"
live=$CASES/../fixtures/live
edgewise run $net $live/small.ts --hop 4 --json >out 2>err || {
    cat err >&2
    exit 77
}
python3 $CASES/../rtsp_server.py port 30 $live/small.ts $live/large.ts &
server=$!
until [ -s port ]; do sleep 0.1; done
edgewise run $net rtsp://127.0.0.1:$(cat port)/cam --hop 4 --json >out 2>err &
run=$!
until grep -q 'frames are 64 x 48' err || ! kill -0 $run 2>/dev/null; do sleep 0.1; done
kill -INT $run
wait $run && echo "ended by a signal: well"
grep -E '"(size_changes|reopened)"' out | tr -d ' \n'
echo
kill $server 2>/dev/null || true
cat $live/small.ts $live/large.ts >both.ts
edgewise run $net both.ts --hop 8 --json 2>/dev/null | grep -E '"size_changes"' | tr -d ' \n'
echo
frames() { head -c $((28 * 28 * 3 * $1)) /dev/zero; }
(frames 10; sleep 0.3; frames 10) | edgewise run $net - --hop 2 --json 2>/dev/null | grep '"answers"' | tr -d ' '
