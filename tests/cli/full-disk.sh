#!/usr/bin/env bash
# Output that cannot be written is an error, not a success.
[ -w /dev/full ] || { echo 'no /dev/full here' >&2; exit 77; }
edgewise eval lenet5-mnist --data synthetic:size=28,train=20,test=20 --png /dev/full 2>&1 >/dev/null | tail -n 1 >&2
edgewise help >/dev/full
