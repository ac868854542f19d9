#!/usr/bin/env bash
# A folder that somebody else has packed, with a file of the program's name and a module beside it: nothing
# of it is run or taken for ours when the program is called there.
cc -shared -fPIC -x c -o libedgewise-cuda.so - <<'C' 2>/dev/null || { echo "no compiler here" >&2; exit 77; }
#include <stdio.h>
__attribute__((constructor)) static void begin(void)
{
    puts("a stranger's code");
}
C
cp libedgewise-cuda.so libedgewise-mpi.so
touch edgewise
env -u EDGEWISE_CUDA_MODULE edgewise devices | grep -c stranger || true
edgewise info lenet5-mnist >/dev/null && echo "its own networks"
