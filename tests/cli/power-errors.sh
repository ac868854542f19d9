#!/usr/bin/env bash
# Invalid requests: an error in one line, and nothing is changed.
cp -a "$CASES/../fixtures/boards/agx-xavier-jp5" agx
cp -a agx before
try() {
    code=0
    edgewise power --root agx "$@" || code=$? # the root comes first: what follows -- is a command
    echo "exit $code" >&2
}
try lst
try set
try set NONE
try set 1
try set --cores 12
try set --cpu-mhz 5000
try set --gpu-mhz 1
try set 2 false
try set --cores 4 false
try list 2
try show -- true
try set --cores 4 -- false
# Regression: nothing needed a change, and the reason was that there was no journal to restore.
try set --cores 8 -- no-such-command
rm -rf agx/run
diff -r <(cd agx && grep -ra . sys | sort) <(cd before && grep -ra . sys | sort) >&2
# A machine without clock control, like many virtual ones: nothing was set, and success must not be reported.
mkdir -p none/sys/devices/system/cpu/cpu0 && echo 0 >none/sys/devices/system/cpu/present
edgewise power --root none set --dvfs off || echo "exit $?" >&2
