#!/usr/bin/env bash
# Results on read-only media can be read; writing there gives the reason, and kernels that --tune measured are used even
# if they cannot be cached.
mkdir disk
mount -t tmpfs -o size=4m tmpfs disk 2>/dev/null || { echo "no tmpfs can be mounted here" >&2; exit 77; }
trap 'umount disk' EXIT
export EW_UNIT=test
mkdir 'disk/a b?%#'
edgewise bench lenet5 --iters 1 --warmup 0 --db 'disk/a b?%#/s.db' >/dev/null
edgewise bench lenet5 --iters 1 --warmup 0 --db disk/s.db >/dev/null
mount -o remount,ro disk
edgewise results --db 'disk/a b?%#/s.db' --columns id,status
edgewise report --db disk/s.db >/dev/null && echo "a report"
edgewise results export out.db --db disk/s.db
edgewise results import 'disk/a b?%#/s.db' --db disk/s.db 2>&1 || echo "exit $?"
{ edgewise bench lenet5 --iters 1 --warmup 0 --db disk/s.db >/dev/null; } 2>&1 || echo "exit $?"
{ edgewise bench lenet5 --iters 1 --warmup 0 --db disk/new.db >/dev/null; } 2>&1 || echo "exit $?"
{ edgewise bench lenet5 --iters 1 --warmup 0 --db none/new.db >/dev/null; } 2>&1 || echo "exit $?"
{ XDG_CACHE_HOME=$PWD/disk/cache edgewise compile lenet5 --tune --threads 1 -o net.ewe >/dev/null; } 2>&1 | grep -o 'Read-only.*remembered'
edgewise run net.ewe --random >/dev/null 2>&1 && echo "an engine"
XDG_CACHE_HOME=/$(printf 'n%.0s' {1..600}) edgewise bench lenet5 --iters 1 --warmup 0 --tune >/dev/null && echo "no place to remember"
