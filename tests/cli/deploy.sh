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
# A trained network by its name is sent as the file that it is; a unit of the board's user keeps monitor running.
cat >bin/systemctl <<'UNIT'
#!/bin/sh
echo "systemctl $*" >>"$BOARD/units"
UNIT
chmod +x bin/systemctl
HOME=$BOARD edgewise deploy board lenet5-mnist --service 2>/dev/null | grep -E '^service|^run'
(cd home/edgewise && echo *mnist*)
cat home/units home/.config/systemd/user/edgewise-monitor.service
edgewise deploy board lenet5 --service --folder 'a b' 2>&1 | head -n 1
# A program that cannot start there.
printf '#!/bin/sh\nexit 0\n' >no-program
if ! edgewise deploy board lenet5 --program no-program 2>/dev/null; then echo "not a program"; fi
# What cannot be.
edgewise deploy nowhere lenet5 2>&1 || echo "exit $?"
printf '#!/bin/sh\necho riscv64\n' >bin/ssh
edgewise deploy board lenet5 2>&1 | sed -e 's| /.* is for| PROGRAM is for|' -e 's|for x86_64$|for HERE|; s|for aarch64$|for HERE|'
edgewise deploy -x lenet5 2>&1 | head -n 1
