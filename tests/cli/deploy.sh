#!/usr/bin/env bash
# To a board by ssh and back: a script stands for ssh, a folder for the board's home.
mkdir bin home
cat >bin/ssh <<'SSH'
#!/bin/sh
# ssh -o OPTION... -- HOST COMMAND
while [ "$1" != -- ]; do shift; done
shift
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
# Nothing is sent twice; an interrupted copy is continued.
edgewise deploy board "my net.onnx" --json 2>/dev/null | grep _sent
size=$(stat -c %s "my net.onnx")
sum=$(sha256sum "my net.onnx" | cut -c 1-8)
mv "home/edgewise/my net.onnx" whole
head -c 100000 whole >"home/edgewise/my net.onnx.$sum"
edgewise deploy board "my net.onnx" --json 2>/dev/null | grep network_bytes | tr -dc '0-9\n' | awk -v s="$size" '{ print s - $1, "bytes were there" }'
cmp whole "home/edgewise/my net.onnx" && echo "the same file"
# A file with the copy's name and other contents: sent again from the beginning, once.
for bytes in 1000 "$size"; do
    rm "home/edgewise/my net.onnx"
    head -c "$bytes" /dev/zero >"home/edgewise/my net.onnx.$sum"
    edgewise deploy board "my net.onnx" --json 2>/dev/null | grep network_bytes | tr -dc '0-9\n' | awk -v s="$size" '{ print s - $1, "bytes of another" }'
    cmp whole "home/edgewise/my net.onnx"
    find home/edgewise -name "*$sum*"
done
# A connection lost in the middle: the next call continues.
cp bin/ssh well
cat >bin/ssh <<'SSH'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $3 in *"cat >"*) head -c 100000 ;; *) cat ;; esac | sh ./well "$@"
SSH
rm "home/edgewise/my net.onnx"
edgewise deploy board "my net.onnx" >/dev/null 2>&1 || echo "lost"
cp well bin/ssh
edgewise deploy board "my net.onnx" --json 2>/dev/null | grep network_bytes | tr -dc '0-9\n' | awk -v s="$size" '{ print s - $1, "bytes had come" }'
cmp whole "home/edgewise/my net.onnx"
# A board that modifies what it receives; one whose store never ends.
cat >bin/ssh <<'SSH'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $3 in *"cat >"*) tr a b ;; *) cat ;; esac | sh ./well "$@"
SSH
rm "home/edgewise/my net.onnx"
edgewise deploy board "my net.onnx" 2>&1 >/dev/null | tail -n 1
find home/edgewise -name "*$sum*"
cat >bin/ssh <<'SSH'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $3 in "cat "*deploy.db*) exec cat /dev/zero ;; esac
exec sh ./well "$@"
SSH
(ulimit -f 20000 && edgewise deploy board "my net.onnx" --bench 2>&1 >/dev/null | grep -o 'File too large') || true
cp well bin/ssh
# Names that look like options or like the program; options that conflict.
cp "my net.onnx" ./-x.onnx && edgewise deploy board ./-x.onnx --bench --json 2>/dev/null | grep -E '"(engine|runs)"'
cp "my net.onnx" edgewise && edgewise deploy board ./edgewise 2>&1 >/dev/null | grep -o 'the program there.*'
edgewise deploy board lenet5 --compile "$(printf ' %.0s' {1..1000})" 2>&1 >/dev/null | tail -n 1
# A trained network given by name is sent as its file; a systemd user unit keeps monitor running.
cat >bin/systemctl <<'UNIT'
#!/bin/sh
echo "systemctl $*" >>"$BOARD/units"
UNIT
chmod +x bin/systemctl
HOME=$BOARD edgewise deploy board lenet5-mnist --service 2>/dev/null | grep -E '^service|^run'
(cd home/edgewise && echo *mnist*)
cat home/units home/.config/systemd/user/edgewise-monitor.service
edgewise deploy board lenet5 --service --folder 'a b' 2>&1 | head -n 1
# A program that cannot start on the board.
printf '#!/bin/sh\nexit 0\n' >no-program
if ! edgewise deploy board lenet5 --program no-program 2>/dev/null; then echo "not a program"; fi
# Invalid requests.
edgewise deploy nowhere lenet5 2>&1 || echo "exit $?"
printf '#!/bin/sh\necho riscv64\n' >bin/ssh
edgewise deploy board lenet5 2>&1 | sed -e 's| /.* is for| PROGRAM is for|' -e 's|for x86_64$|for HERE|; s|for aarch64$|for HERE|'
printf '#!/bin/sh\n' >bin/ssh
edgewise deploy board lenet5 2>&1 || echo "exit $?"
edgewise deploy -x lenet5 2>&1 | head -n 1
