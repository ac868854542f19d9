# Every captured board: advice before measuring, with the commands.
for board in "$CASES"/../fixtures/boards/*/; do
    echo "== $(basename "$board")"
    edgewise doctor --root "$board"
done
cp -a "$CASES/../fixtures/boards/rpi4" ready
for p in ready/sys/devices/system/cpu/cpufreq/policy*; do echo performance >"$p/scaling_governor"; done
edgewise doctor --root ready --json | grep -B 1 -A 2 '"finding": "ok"' | head -n 4
edgewise doctor >here && tail -n 1 here | grep -cE 'to change'
edgewise probe --json | grep -c '"instruction_sets"'
