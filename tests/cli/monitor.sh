#!/usr/bin/env bash
# Every captured board as plain text, without escape sequences if there is no terminal, and with a command.
round() { awk '$1 == "\"power_mean_w\":" { $2 = sprintf("%.3f", $2) } { print }'; }
for board in "$CASES"/../fixtures/boards/*/; do
    echo "== $(basename "$board")"
    edgewise monitor --count 1 --root "$board" >frame
    ! grep -q $'\033' frame
    sed 's/, sampler.*//' frame
    edgewise monitor --json --root "$board" -- sleep 0.15 |
        grep -E '"(power_mean_w|(energy|hottest|throttled)_(absent|source|rails))"' | grep -v null | round
done
edgewise monitor --count 3 --interval 0.01 --log log.csv --root "$CASES/../fixtures/boards/rpi5" >/dev/null
edgewise monitor --count 2 --interval 0.01 --log log.jsonl --root "$CASES/../fixtures/boards/rpi5" >/dev/null
wc -l <log.csv
head -n 1 log.csv | tr ',' '\n' | head -n 8
head -n 1 log.jsonl | sed 's/"values".*//'
edgewise monitor --root "$CASES/../fixtures/boards/xavier-nx-jp5" --json -- sh -c 'sleep 0.3; exit 3' >run.json 2>error || echo "exit $?"
sed 's/.*: //' error
grep -E '"(exit_status|power_mean_w|energy_source|energy_rails|energy_quality|hottest)"' run.json | round
edgewise monitor --json -- true | grep -c '"energy_j"'
edgewise monitor --output figures -- true
grep -c 'wall time' figures
edgewise monitor --power-from 'while :; do echo 7.5; sleep 0.02; done' --json -- sleep 0.5 |
    grep -E '"(power_mean_w|energy_rails)"' | round
edgewise monitor --count 2 --interval 0.01 --json --root "$CASES/../fixtures/boards/rpi5" | sed 's/"time_s":[^,]*,"values".*/LINE/'
for option in --tegrastats --watch; do
    edgewise monitor --count 1 $option none 2>error || echo "exit $?"
    cat error
done
# Ctrl-C during the baseline ends monitor.  Regression: the command ran all the same.
begun=$SECONDS
timeout -s INT 0.3 edgewise monitor --baseline 30 -- touch ran || echo "exit $?"
[ $((SECONDS - begun)) -lt 20 ] && [ ! -e ran ]
# Regression: a short interval filled the ring before it was read.
edgewise monitor --json --interval 0.001 -- sleep 0.5 | grep '"sampler_dropped"'
# The last reading for Prometheus: base units, and no line for absent values.
edgewise monitor --root "$CASES/../fixtures/boards/rpi4" --count 2 --interval 0.05 --log board.prom >/dev/null
grep -E '^# TYPE|temperature_celsius\{|cpu0.freq|throttle.*under' board.prom
grep -c power board.prom || true
{ edgewise monitor --count 1 --log board.txt >/dev/null; } 2>&1 || echo "exit $?"
# Processes with any names: the larger one first if neither used the CPU.
mkdir -p root/proc/7 root/proc/12
echo '7 (a) (b) S 1 7 7 0 -1 0 0 0 0 0 100 50 0 0 20 0 1 0 5 1000 256 0' >root/proc/7/stat
echo '12 (init) S 1 12 12 0 -1 0 0 0 0 0 900 50 0 0 20 0 1 0 5 1000 512 0' >root/proc/12/stat
edgewise monitor --root root --count 2 --interval 0.05 | grep -A 2 processes
# A meter given as a script is executed.  Regression: its text was read as readings.
printf '#!/bin/sh\nwhile :; do echo 12.5; sleep 0.02; done\n' >meter.sh && chmod +x meter.sh
edgewise monitor --power-from ./meter.sh -- sleep 0.5 | grep -c 'energy .* J .*power of meter'
# A view whose frames come faster than they are shown ends when told to: only between frames did it look.
mkfifo frames
timeout -s KILL 60 edgewise monitor --interval 0.0001 >frames &
exec 3<frames
read -r _ <&3
kill "$!"
cat <&3 >/dev/null &
wait %1 && echo "the view ended"
# Regression: Ctrl-\ left the terminal without echo.  (Ignored by programs that a script starts in the background.)
mkfifo quit
env --default-signal=QUIT timeout -s KILL 60 edgewise monitor --interval 0.01 >quit &
view=$!
exec 4<quit
read -r _ <&4
kill -QUIT "$view"
cat <&4 >/dev/null &
wait "$view" && echo "so did this"
# Regression: Ctrl-Z left the shell with the view's screen and no echo, and nothing drew or read keys after fg.
cat >stop.sh <<'EOF'
set -m
(until grep -q 1049h typescript 2>/dev/null; do sleep 0.05; done; kill -TSTP "$(cat pid)") &
sh -c 'echo $$ >pid; exec edgewise monitor --interval 0.05'
echo "stopped ($?): $(stty -a | grep -oE -- '-?icanon')" >>said
(until [ "$(grep -o 1049h typescript | wc -l)" -ge 2 ]; do sleep 0.05; done; kill -TERM "$(cat pid)") &
fg %2 >/dev/null
echo "ended ($?): $(stty -a | grep -oE -- '-?icanon'), its screen left $(grep -o 1049l typescript | wc -l) times" >>said
EOF
timeout -s KILL 60 script -qfc 'bash stop.sh' typescript </dev/null >/dev/null || true
cat said
# Commands of one program are different jobs.  Regression: their figures were means over all of them.
for code in 0 1 0; do edgewise monitor --db own.db -- sh -c "exit $code" >/dev/null 2>&1 || true; done
edgewise results --db own.db --csv --columns network,job | sed 1d | cut -d , -f 1 | sort
edgewise results --db own.db --csv --columns job | sed 1d | sort -u | wc -l
