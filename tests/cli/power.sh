#!/usr/bin/env bash
# Modes, clocks and state of every captured board; setting and restoring on a copy of one.
for board in "$CASES"/../fixtures/boards/*/; do
    echo "== $(basename "$board")"
    edgewise power list --root "$board"
    edgewise power show --root "$board"
done
cp -a "$CASES/../fixtures/boards/jetson-nano-jp4" nano
freq=nano/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq
echo "== set"
edgewise power set 5W --root nano
edgewise power show --root nano | sed 's/process [0-9]*/process N/'
edgewise power restore --root nano
edgewise power restore --root nano
edgewise power show --root nano
echo "== for a command"
edgewise power set --root nano --cpu-mhz 614 --dvfs off -- cat $freq
echo
cat $freq
echo
echo "== a mode, its clocks held and the fan at full speed"
edgewise power set 5W --dvfs off --fan full --root nano -- cat ${freq/max/min} nano/sys/devices/pwm-fan/target_pwm
echo
edgewise power show --json --root nano
echo "== as JSON"
edgewise power set --json --root nano --cores 2
edgewise power restore --json --root nano
edgewise power list --json --root "$CASES/../fixtures/boards/x86-nvidia"
