#!/usr/bin/env bash
# Files over the shell's limit and full disks: the system's reason by the file's name, and nothing left behind.
# The program ended by a signal there, without a word, and left its temporary file.
limited() { (ulimit -f 20 && { edgewise "$@" >/dev/null; } 2>&1 | tail -n 1); }
limited export lenet5 -o big.onnx
limited compile lenet5 -o big.ewe
find . -name '*big*'
if [ -w /dev/full ]; then
    { edgewise export lenet5 -o /dev/full >/dev/null; } 2>&1 | tail -n 1
else
    echo 'edgewise: /dev/full: No space left on device'
fi
# A command of the user's has the limit that the shell gave it.
(ulimit -f 20 && edgewise monitor --json -- sh -c 'head -c 100000 /dev/zero >zeros' 2>/dev/null | grep '"exit_status"') || true
