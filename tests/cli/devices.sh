#!/usr/bin/env bash
# Available devices, and their names.
edgewise devices | head -n 1 | tr -s ' '
edgewise devices | awk '$1 == "cpu" { print "there is a cpu" }'
edgewise devices --json | grep -c '"device": *"cpu"'
edgewise bench lenet5 --iters 1 --device cpu --json | grep -o '"device": *"cpu"'
edgewise bench lenet5 --device abacus:7 2>>errors || echo "exit $?"
edgewise run lenet5 --random --device cpu:7 2>>errors || echo "exit $?"
EW_DEVICE=abacus edgewise run lenet5 --random 2>>errors || echo "exit $?"
sed "s/; this program has.*//" errors
# A wrong instruction set names those that there are.
EW_ISA=none edgewise bench lenet5 --iters 1 2>&1 | grep -cE 'not in this build, which has [a-z]'
