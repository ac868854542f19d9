#!/usr/bin/env bash
# A study on four machines, each a folder and a home of its own behind a launcher and, if the system permits, with its
# own namespaces: processes, network, host name, users.  Each machine is killed once while it works (jobs spend most of
# their second waiting, by qps); all jobs run once, and lost runs are marked.
cat >f.study <<'STUDY'
[study]
order = file
[defaults]
command = bench
network = lenet5
threads = 1
warmup = 0
qps = 50
[a]
iters = 41 42 43 44 45 46 47 48 49
STUDY
cat >launch <<'LAUNCH'
#!/bin/sh
# launch NAME WORD...: the machine NAME
name=$1
shift
[ -e "$name.off" ] && exit 255
mkdir -p "$name.home"
echo $$ >"$name.pid"
HOME=$PWD/$name.home EW_UNIT=device-$name exec $EW_APART "$@"
LAUNCH
chmod +x launch
apart="unshare --user --map-root-user --pid --fork --kill-child --mount-proc --uts --ipc --net"
if $apart true 2>/dev/null; then export EW_APART=$apart; else export EW_APART=; fi
machines="a b c d"
for m in $machines; do
    printf '[%s]\nlauncher = ./launch %s\nfolder = %s.work\nretries = 50\n' "$m" "$m" "$m" >>four.ini
done
edgewise study f.study --on four.ini --quick >table 2>talk.txt &
study=$!
for m in $machines; do
    # The machine is working: its run is in the store.
    until edgewise results --where "status = 'running' and machine_unit = '$m'" --csv 2>/dev/null | tail -n +2 | grep -q .; do
        kill -0 "$study" 2>/dev/null || { echo "no job for $m" && break; }
        sleep 0.02
    done
    kill -9 "$(cat "$m.pid")"
done
wait $study
edgewise results --where "status = 'done'" --order iters --columns iters
edgewise results --where "status in ('running', 'failed', 'skipped')" 2>&1
said=$(grep -c 'went away; its job is interrupted' talk.txt)
kept=$(edgewise results --where "status = 'interrupted' and reason like '%went away%'" --csv | tail -n +2 | wc -l)
[ "$said" -ge 1 ] && [ "$said" -eq "$kept" ] && echo "what was lost is marked"
# Finished already: nothing is started.
rm ./*.pid
edgewise study f.study --on four.ini --quick --json | grep -E '"(done|left)"'
ls ./*.pid 2>/dev/null || echo "nobody was asked"

# Each job on each machine; one machine is missing, and its jobs remain open.
sed 's/order = file/order = file\nrepeat = per-device/; s/iters = .*/iters = 11 12/' f.study >each.study
sed 's/retries = 50/retries = 0/' four.ini >once.ini
touch c.off
edgewise study each.study --on once.ini --quick >/dev/null 2>talk.txt || echo "exit $?"
tail -n 1 talk.txt
rm c.off
edgewise study each.study --on once.ini --quick --json 2>/dev/null | grep -E '"(done|left)"'
edgewise results --where "study = 'each' and status = 'done'" --order machine_unit,iters --columns machine_unit,iters

# A job that one machine cannot run goes to another: only d has the data.
cat >data.study <<'STUDY'
[defaults]
command = train
network = lenet5
data = small
epochs = 1
[a]
batch = 8 16
STUDY
edgewise data make --kind digits --train 40 --test 20 --to d.work/small >/dev/null 2>&1
edgewise study data.study --on four.ini --quick >/dev/null 2>talk.txt || echo "exit $?"
edgewise results --where "study = 'data' and status = 'done'" --order batch --columns machine_unit,batch

# A device other than the file says; another program; a shell that prints; no launcher.
printf '[a]\nlauncher = ./launch a\nfolder = a.work\ndevice = device-b\nretries = 0\n' >wrong.ini
edgewise study f.study --on wrong.ini --quick --db w.db 2>&1 >/dev/null | head -n 1
printf '[a]\nlauncher = sh -c "echo Welcome; cat"\nretries = 0\n' >talks.ini
edgewise study f.study --on talks.ini --quick --db w.db 2>&1 >/dev/null | head -n 1
printf '[a]\nlauncher = no-such-launcher\nretries = 0\n' >none.ini
edgewise study f.study --on none.ini --quick --db w.db 2>&1 >/dev/null | head -n 1
# A machine that is alive but never finishes its job.
sed 's/iters = .*/iters = 100000/' f.study >long.study
printf '[a]\nlauncher = ./launch a\nfolder = a.work\nretries = 0\njob-timeout = 1\n' >slow.ini
edgewise study long.study --on slow.ini --quick --db w.db 2>&1 >/dev/null | grep 'given up'
edgewise results --db w.db --where "study = 'long'" --csv --columns status,reason | tail -n 1 | grep -o 'interrupted\|took .* job'
printf '[a]\nprogram = edgewise;reboot\n' >shell.ini
edgewise study f.study --on shell.ini --quick 2>&1 || echo "exit $?"

# Other commands on all machines.
edgewise probe --on four.ini 2>/dev/null | grep '^=='
edgewise probe --on four.ini --json 2>/dev/null | grep -cE '^  "[abcd]": {'
edgewise monitor --on four.ini --json --count 2 --interval 0.05 2>/dev/null | sed 's/,.*//' | sort | uniq -c | sed 's/^ *//'
