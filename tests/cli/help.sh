#!/usr/bin/env bash
# All forms of asking for help give the same text; --help works with any other arguments.
edgewise help >all
edgewise --help | cmp - all
edgewise -h | cmp - all
edgewise help version >one
edgewise version --help | cmp - one
edgewise version too many words --help | cmp - one
grep -q '^Usage: edgewise COMMAND' all
cat one
edgewise help --json | grep -c '"summary"' | sed 's/^[1-9][0-9]$/tens of commands/'
edgewise help bench --json | grep -A 1 '"name": "warmup"'
edgewise bench nosuch 2>&1 || true
# An option wider than its column has its own line; an option stays with its value; "" is not shown as a default.
edgewise export --help | grep -A 1 -e '-o, --output'
edgewise prune --help | grep -A 1 'prune best.ckpt --macs'
edgewise deploy --help | grep -c '(default )' || true
