#!/usr/bin/env bash
# Output that cannot be written is an error, not a success.
[ -w /dev/full ] || { echo 'no /dev/full here' >&2; exit 77; }
edgewise help >/dev/full
