#!/usr/bin/env bash
# The modelled DPU: a table of layers, several networks, a sweep, and what is refused.
edgewise bench lenet5 --device dpu:kv260 | tr -s ' '
edgewise bench lenet5 resnext50_32x4d --device dpu:B1152,cores=1 | tr -s ' '
edgewise bench lenet5 --device dpu --json | grep -o '"quality": *"modelled"'
edgewise bench lenet5 --device dpu --sweep --picture sweep.svg 2>/dev/null | tail -n 2
grep -c '<circle' sweep.svg
edgewise bench lenet5 --sweep 2>&1 >/dev/null | head -n 1
edgewise bench lenet5 --device dpu:B4097 2>&1 | head -n 1
edgewise bench --protocol scale --device dpu | tail -n 1
