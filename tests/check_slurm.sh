#!/usr/bin/env bash
# A study on a real Slurm cluster: a controller and three node daemons on loopback, started and stopped here.  Skipped
# without Debian's slurm-wlm and munge, or without root.
# usage: check_slurm.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
build=$(cd "$2" && pwd)
skip() { echo "skip slurm: $1"; exit 77; }
for program in slurmctld slurmd srun munged; do
    command -v $program >/dev/null || [ -x /usr/sbin/$program ] || skip "no $program (slurm-wlm, munge)"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd needs root"
PATH=$build/src:$PATH:/usr/sbin
work=$(mktemp -d)
pids=()
# shellcheck disable=SC2317 # called by trap
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    sleep 0.5
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
host=$(hostname -s)

# The daemons authenticate by a key created here.
mkdir munge && chmod 700 munge
dd if=/dev/urandom of=munge/key bs=1 count=1024 status=none && chmod 400 munge/key
munged --foreground --force --socket="$work/munge/socket" --key-file="$work/munge/key" \
    --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --log-file="$work/munge/log" >/dev/null 2>&1 &
pids+=($!)
mkdir state spool
cat >slurm.conf <<CONF
ClusterName=edgewise
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17817
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmdPidFile=$work/spool/%n.pid
SlurmctldPidFile=$work/state/pid
SlurmctldLogFile=$work/state/log
SlurmdLogFile=$work/spool/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
ReturnToService=2
NodeName=n[1-3] NodeAddr=127.0.0.1 NodeHostname=$host Port=[17821-17823] CPUs=1 State=UNKNOWN
PartitionName=all Nodes=n[1-3] Default=YES OverSubscribe=YES State=UP
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 50); do [ ! -S munge/socket ] || break; sleep 0.1; done
slurmctld -D >state/out 2>&1 &
pids+=($!)
for n in n1 n2 n3; do
    mkdir -p "spool/$n"
    slurmd -D -N $n >"spool/$n.out" 2>&1 &
    pids+=($!)
done
up=0
for _ in $(seq 100); do
    up=$(sinfo -h -o '%t %D' 2>/dev/null | awk '$1 == "idle" { n += $2 } END { print n + 0 }')
    [ "$up" -lt 3 ] || break
    sleep 0.2
done
[ "$up" -ge 3 ] || { tail -n 3 state/log spool/*.out >&2; skip "slurmd does not start here"; }

# The study: one job on each node, by srun.
cat >s.study <<'STUDY'
[study]
order = file
repeat = per-device
[a]
command = bench
network = lenet5
threads = 1
warmup = 0
iters = 101 102
STUDY
for n in n1 n2 n3; do
    printf '[%s]\nlauncher = srun -Q -N 1 -n 1 -w %s\nprogram = %s/src/edgewise\nfolder = %s/%s.work\n' \
        $n $n "$build" "$work" $n >>nodes.ini
done
status=0
edgewise study s.study --on nodes.ini --quick >table.txt 2>talk.txt || status=$?
[ $status -eq 0 ] || { cat talk.txt; echo "FAIL slurm: exit $status"; exit 1; }
edgewise results --where "status = 'done'" --order machine_unit,iters --columns machine_unit,iters >got.txt
diff got.txt - <<'WANT' || { echo "FAIL slurm: other rows"; exit 1; }
machine_unit  iters
n1              101
n1              102
n2              101
n2              102
n3              101
n3              102
WANT
what="a study on three nodes through srun"

# One distributed training with two ranks started by Slurm; on one node, since the PMIx of daemons on a shared host
# conflicts.
if [ -e "$build/src/libedgewise-mpi.so" ] && srun --mpi=list 2>&1 | grep -q pmix; then
    edgewise data make --kind digits --train 40 --test 10 --to digits >/dev/null 2>&1
    if ! timeout 60 srun --mpi=pmix -Q -N 1 -n 2 --overcommit -w n1 "$build/src/edgewise" train lenet5 --data digits --batch 10 \
        --epochs 1 --threads 1 -o run >train.txt 2>&1; then
        tail -n 12 train.txt
        echo "FAIL slurm: training by ranks"
        exit 1
    fi
    [ "$(tail -n +2 run/ranks.csv | wc -l)" -eq 2 ] || { cat run/ranks.csv; echo "FAIL slurm: not two ranks"; exit 1; }
    what="$what, and training by two ranks"
fi
echo "ok slurm: $what"
