#!/usr/bin/env bash
# The kernel of a step and the reasons for it: with plain C, whose estimates are the same on every machine.
exec 2>&1
export EW_ISA=plain XDG_CACHE_HOME=$PWD
edgewise bench lenet5 --why conv1 --threads 1 >/dev/null 2>&1 || { echo "no plain kernels here"; exit 77; }
edgewise bench resnet18 --why layer1.0.conv1 --threads 1
edgewise bench resnet18 --train --batch 2 --input 64x64x3 --why layer4.0.conv2 --threads 1
edgewise bench lenet5 --why 1 --threads 1 --json
# Step numbers are those of --profile, which has no step for nodes that passes have fused.
edgewise bench lenet5 --profile --quick --threads 1 2>/dev/null | awk '$1 == 2 {print $2}'
edgewise bench lenet5 --why 2 --threads 1 | sed 1q
# With tuning, forward candidates have times.
edgewise bench lenet5 --batch 16 --why conv2 --tune --threads 1 --json | grep -cE '"us": [0-9]'
edgewise bench lenet5 --why nowhere || true
edgewise bench lenet5 resnet18 --why conv1 || true
edgewise bench lenet5 --why conv1 --db x.db || true
