#!/usr/bin/env bash
# deploy end to end: a real ssh server on loopback, behind it a 64-bit Arm "board" with nothing but busybox (user-mode
# qemu in proot), the static program, and rows that are sent back.
# usage: check_board.sh SOURCE_DIR BUILD_DIR
# Uses the program and busybox of `./run static`; skipped without them.
set -euo pipefail
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
skip() { echo "skip board: $1"; exit 77; }
program=$source/build/static-aarch64/src/edgewise busybox=$source/build/sysroot-arm64/bin/busybox
if [ ! -x "$program" ] || [ ! -x "$busybox" ]; then skip "no static program for 64-bit Arm; ./run static builds it"; fi
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || skip "no sshd (openssh-server)"
for tool in ssh ssh-keygen proot qemu-aarch64; do command -v $tool >/dev/null || skip "no $tool"; done
# sshd's privilege separation folder, which the package's script creates if there is no systemd.
if [ ! -d /run/sshd ] && ! mkdir -p /run/sshd 2>/dev/null; then skip "no /run/sshd"; fi

dir=$(mktemp -d)
# shellcheck disable=SC2317 # called by trap
finish() {
    if [ -f "$dir/sshd.pid" ]; then kill "$(cat "$dir/sshd.pid")" 2>/dev/null || true; fi
    rm -rf "$dir"
}
trap finish EXIT

# The board.
mkdir -p "$dir/board/bin" "$dir/board/home/pi" "$dir/board/tmp" "$dir/board/proc" "$dir/board/dev" "$dir/home"
cp "$busybox" "$dir/board/bin/"
for tool in sh uname mkdir cat sha256sum cut wc mv chmod head ls; do ln -s busybox "$dir/board/bin/$tool"; done
cat >"$dir/login" <<END
#!/bin/sh
exec env -i PATH=/bin HOME=/home/pi "$(command -v proot)" -q "$(command -v qemu-aarch64)" -r "$dir/board" -b /proc -b /dev \\
    -w /home/pi /bin/sh -c "\$SSH_ORIGINAL_COMMAND"
END
chmod +x "$dir/login"

# The server: one key, one permitted command, loopback.
ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
cp "$dir/key.pub" "$dir/keys"
for port in $(seq 20222 20240); do
    cat >"$dir/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $dir/host
PidFile $dir/sshd.pid
AuthorizedKeysFile $dir/keys
PasswordAuthentication no
StrictModes no
UsePAM no
ForceCommand $dir/login
END
    if "$sshd" -f "$dir/sshd_config" -E "$dir/sshd.log"; then break; fi
done
for _ in $(seq 50); do
    [ ! -f "$dir/sshd.pid" ] || break
    sleep 0.1
done
[ -f "$dir/sshd.pid" ] || skip "sshd does not start: $(tail -n 1 "$dir/sshd.log")"
cat >"$dir/ssh" <<END
#!/bin/sh
exec ssh -p $port -i "$dir/key" -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile="$dir/known" \\
    -o LogLevel=ERROR -o ConnectTimeout=10 "\$@"
END
chmod +x "$dir/ssh"
export EW_SSH=$dir/ssh
cd "$dir/home"
"$dir/ssh" 127.0.0.1 true 2>"$dir/said" || skip "no login on loopback: $(tail -n 1 "$dir/said")"

status=0
expect() { # WHAT FOUND WANTED
    if [ "$2" = "$3" ]; then echo "ok $1"; else echo "$1: '$2', not '$3'"; echo "FAIL $1"; status=1; fi
}
edgewise=$build/src/edgewise
# deploy finds the program for the board in the build tree; a trained network is given by name.
if ! "$edgewise" deploy 127.0.0.1 lenet5-mnist --bench >first 2>"$dir/said"; then
    cat "$dir/said"
    echo "FAIL deploy"
    exit 1
fi
expect "machine" "$(sed -n 's/.*, \(aarch64\)$/\1/p' first)" aarch64
expect "rows at home" "$("$edgewise" results --columns network,status | tail -n 1 | tr -s ' ')" "lenet5-mnist.ewe done"
expect "an engine there" "$(head -c 4 "$dir/board/home/pi/edgewise/lenet5-mnist.ewe" | tr -d '\0' | wc -c | tr -d ' ')" 4
"$edgewise" deploy 127.0.0.1 lenet5-mnist --json 2>/dev/null >second
expect "nothing is sent twice" "$(grep -c 'bytes_sent": 0' second)" 2
# An interrupted transfer: half of the program is there, only the rest is sent.
sum=$(sha256sum "$program" | cut -c 1-8)
half=$(($(stat -c %s "$program") / 2))
rm "$dir/board/home/pi/edgewise/edgewise"
head -c $half "$program" >"$dir/board/home/pi/edgewise/edgewise.$sum"
"$edgewise" deploy 127.0.0.1 lenet5-mnist --json 2>/dev/null >third
expect "a copy goes on" "$(sed -n 's/.*program_bytes_sent": \([0-9]*\).*/\1/p' third)" $(($(stat -c %s "$program") - half))
cp "$source/docs/pictures/three.png" "$dir/board/home/pi/"
expect "classified there" \
    "$("$dir/ssh" 127.0.0.1 edgewise/edgewise run edgewise/lenet5-mnist.ewe three.png --top 1 2>/dev/null | awk 'END { print $NF }')" 3
exit $status
