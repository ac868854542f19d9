#!/usr/bin/env bash
# Real launchers: a study, probe and monitor through ssh to a daemon started here on loopback (a high port and temporary
# keys), and through namespaces like those of containers (unshare, proot).
# Skipped without sshd.
# usage: check_ssh.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
build=$(cd "$2" && pwd)
skip() { echo "skip ssh: $1"; exit 77; }
PATH=$build/src:$PATH:/usr/sbin
sshd=$(command -v sshd) || skip "no sshd (openssh-server)"
command -v ssh >/dev/null || skip "no ssh (openssh-client)"
work=$(mktemp -d)
daemon=
# shellcheck disable=SC2317 # called by trap
finish() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
chmod 700 .
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
cp user.pub authorized
# A free port; sshd also reports it if the port is taken.
port=$((20000 + RANDOM % 20000))
cat >sshd.conf <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $work/host
PidFile none
AuthorizedKeysFile $work/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
CONF
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
"$sshd" -D -e -f sshd.conf 2>sshd.log &
daemon=$!
printf '[127.0.0.1]:%s %s\n' "$port" "$(cut -d ' ' -f 1,2 host.pub)" >known
ssh=(ssh -p "$port" -i "$work/user" -o "UserKnownHostsFile=$work/known" -o BatchMode=yes -o IdentitiesOnly=yes -F none 127.0.0.1)
for _ in $(seq 100); do
    "${ssh[@]}" true 2>ssh.log && break
    kill -0 $daemon 2>/dev/null || skip "sshd does not start: $(tail -n 1 sshd.log)"
    sleep 0.1
done
"${ssh[@]}" true || { cat sshd.log ssh.log; exit 1; }

cat >f.study <<'STUDY'
[study]
repeat = per-device
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
[a]
iters = 3 4
STUDY
machines=(far)
printf '[far]\nlauncher = %s\nprogram = %s\nfolder = %s/far\n' "${ssh[*]}" "$build/src/edgewise" "$work" >boards.ini
# A launcher for containers: a program that enters one, with another view of the machine.
if unshare --map-root-user --pid --fork --mount-proc --uts true 2>/dev/null; then
    machines+=(box)
    printf '[box]\nlauncher = unshare --map-root-user --pid --fork --mount-proc --uts --kill-child\nprogram = %s\nfolder = %s/box\n' \
        "$build/src/edgewise" "$work" >>boards.ini
fi
if command -v proot >/dev/null && proot true 2>/dev/null; then
    machines+=(tree)
    printf '[tree]\nlauncher = proot -b %s:/mnt\nprogram = %s\nfolder = /mnt/tree\n' "$work" "$build/src/edgewise" >>boards.ini
fi
edgewise study f.study --on boards.ini --quick >table 2>talk.txt || { cat talk.txt; exit 1; }
rows=$(edgewise results --where "status = 'done'" --csv | tail -n +2 | wc -l)
[ "$rows" -eq $((2 * ${#machines[@]})) ] || { echo "$rows rows of ${machines[*]}"; cat talk.txt; exit 1; }
for m in "${machines[@]}"; do
    edgewise results --where "machine_unit = '$m'" --columns iters | grep -qE '^ *3$' || { echo "nothing from $m"; exit 1; }
done
edgewise probe --on boards.ini >probe.txt 2>&1
[ "$(grep -c '^==' probe.txt)" -eq ${#machines[@]} ] || { cat probe.txt; exit 1; }
[ "$(edgewise monitor --on boards.ini --json --count 1 --interval 0.05 2>/dev/null | wc -l)" -eq ${#machines[@]} ] ||
    { echo "monitor"; exit 1; }

# The daemon's processes for a connection are killed: the job goes to another machine and runs once.
sed 's/repeat = per-device/order = file/; s/iters = .*/iters = 30001 30002 30003 30004/' f.study >g.study
head -n 4 boards.ini >two.ini
printf '[here]\nfolder = %s/here\n' "$work" >>two.ini
edgewise study g.study --on two.ini --quick >table 2>talk.txt &
study=$!
until edgewise results --where "study = 'g' and status = 'running' and machine_unit = 'far'" --csv 2>/dev/null | tail -n +2 | grep -q .; do
    kill -0 $study 2>/dev/null || { echo "no job for far"; cat talk.txt; exit 1; }
    sleep 0.02
done
pkill -9 -P $daemon
wait $study || { cat talk.txt; exit 1; }
[ "$(edgewise results --where "study = 'g' and status = 'done'" --csv | tail -n +2 | wc -l)" -eq 4 ] || { cat talk.txt; exit 1; }
grep -q 'far.* its job is interrupted' talk.txt || { cat talk.txt; exit 1; }
echo "ok ssh: ${machines[*]}"
