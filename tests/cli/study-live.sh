#!/usr/bin/env bash
# Epochs of running jobs on other machines are on the live page, and are replaced when the jobs' own rows arrive.
cat >t.study <<'STUDY'
[study]
repeat = per-device
[defaults]
command = train
network = lenet5
data = synthetic:train=512,test=16
threads = 1
workers = 0
[a]
epochs = 100000
STUDY
cat >launch <<'LAUNCH'
#!/bin/sh
mkdir -p "$1.home"
HOME=$PWD/$1.home EW_UNIT=device-$1
export HOME EW_UNIT
shift
exec "$@"
LAUNCH
chmod +x launch
for m in a b; do printf '[%s]\nlauncher = ./launch %s\nfolder = %s.work\n' "$m" "$m" "$m" >>two.ini; done
mkfifo where
edgewise study t.study --on two.ini --quick >table 2>talk.txt &
study=$!
until [ -e edgewise.db ]; do
    kill -0 $study || { cat talk.txt; exit 1; }
    sleep 0.05
done
edgewise serve --port 0 >where 2>said &
server=$!
read -r address <where || true
[ -n "$address" ] || { cat said >&2; kill $study; wait; exit 77; } # built without the server
until [ "$(curl -s "${address}metrics" | grep -c '^edgewise_run_epoch{')" -eq 2 ]; do
    kill -0 $study || { cat talk.txt; exit 1; }
    sleep 0.2
done
echo "epochs of both machines"
curl -s "${address}state.json" | grep -oE '"machine": *"[ab]"' | sort -u
kill $study $server
wait $study || echo "exit $?"
wait $server || true
edgewise results --where "status = 'interrupted'" --columns machine_unit --order machine_unit
