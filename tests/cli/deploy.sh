#!/usr/bin/env bash
# To a board by ssh and back: a script stands for ssh, a folder for the board's home.
mkdir bin home
cat >bin/ssh <<'SSH'
#!/bin/sh
# ssh -o OPTION -- HOST COMMAND
shift 3
[ "$1" = nowhere ] && exit 255
cd "$BOARD" && exec sh -c "$2"
SSH
chmod +x bin/ssh
export BOARD=$PWD/home PATH=$PWD/bin:$PATH EW_UNIT=board
edgewise export lenet5-mnist -o "my net.onnx" >/dev/null
edgewise deploy board "my net.onnx" --bench --json 2>/dev/null >first.json
grep -E '"(host|engine|runs)"' first.json
ls home/edgewise
edgewise results --columns network,status,machine_unit
# Nothing is sent twice; a copy that was cut off goes on.
edgewise deploy board "my net.onnx" --json 2>/dev/null | grep _sent
size=$(stat -c %s "my net.onnx")
sum=$(sha256sum "my net.onnx" | cut -c 1-8)
mv "home/edgewise/my net.onnx" whole
head -c 100000 whole >"home/edgewise/my net.onnx.$sum"
edgewise deploy board "my net.onnx" --json 2>/dev/null | grep network_bytes | tr -dc '0-9\n' | awk -v s="$size" '{ print s - $1, "bytes were there" }'
cmp whole "home/edgewise/my net.onnx" && echo "the same file"
# What cannot be.
edgewise deploy nowhere lenet5 2>&1 || echo "exit $?"
printf '#!/bin/sh\necho aarch64\n' >bin/ssh
[ "$(uname -m)" = aarch64 ] || edgewise deploy board lenet5 2>&1 | sed 's| /.* is for|, PROGRAM is for|'
edgewise deploy -x lenet5 2>&1 | head -n 1
