#!/usr/bin/env bash
# Security: called in a foreign folder that contains a file with the program's name and a module, the program neither
# runs nor loads any of it.
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
