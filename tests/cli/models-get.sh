# Trained networks by name: included ones, the user's folder, and downloads with resume and checksum.
export XDG_CACHE_HOME=$PWD/cache
edgewise run lenet5-mnist "$CASES/../../docs/pictures/three.png" --top 1 2>/dev/null
edgewise models --json | grep -A 2 '"name": "resnet9-cifar10"' | tail -n 2
edgewise info resnet18-imagenet 2>&1 || echo "exit $?"
edgewise models get resnet18 2>&1 || echo "exit $?"
mkdir own && edgewise export lenet5 --seed 3 -o own/mine.onnx >/dev/null 2>&1
EW_MODELS=$PWD/own edgewise info mine | grep ^parameters
# A server on loopback with range requests, like publishers'; the published file cannot be included, so the checksum is
# tested with other bytes.
command -v python3 >/dev/null || { echo "no python3 for a server" >&2; exit 77; }
head -c 100000 /dev/zero >files.onnx
cat >server.py <<'PY'
import http.server, os, sys
class Ranged(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        data = open("files.onnx", "rb").read()
        begin = int(self.headers.get("Range", "bytes=0-").split("=")[1].split("-")[0])
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            open("resumed", "w").write(str(begin))
        self.end_headers()
        self.wfile.write(data[begin:])
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Ranged)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
python3 server.py &
trap 'kill $!' EXIT
while [ ! -f port ]; do sleep 0.05; done
mkdir -p cache/edgewise/models
head -c 40000 files.onnx >cache/edgewise/models/resnet18-imagenet.onnx.new.part
edgewise models get resnet18-imagenet --from "http://127.0.0.1:$(cat port)/r.onnx" 2>&1 || echo "exit $?"
cat resumed && echo " bytes were there"
ls cache/edgewise/models
