#!/usr/bin/env bash
# Wrong usage: one line with the reason, the nearest known name, exit status 2.
try() {
    code=0
    edgewise "$@" || code=$?
    echo "exit $code" >&2
}
try
try vesion
try zzzzzz
try version --jsn
try version --nothing-like-it
try version -x
try version extra
try help --format
try help --format=html
try help nothing
try help help --format man
try version --json=maybe
try scale select vgg11_cifar --published --latency 10ms --iterations 3
try scale fit vgg11_cifar --from none.csv --latency 10ms
try data info synthetic --train 5
