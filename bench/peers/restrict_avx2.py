# SPDX-License-Identifier: Apache-2.0
"""A copy of ONNX Runtime's library that takes the CPU for one without AVX-512 and AVX-VNNI.

It has no switch for that.  It asks the operating system, by `xgetbv`, which registers are saved
for a process; the copy has `mov $7, %al` in these places, which says x87, SSE and AVX.  AVX-VNNI
needs no more registers: the copy has `xor %eax, %eax` for the `cpuid` after which that bit is tested.
The same library on a CPU without either chooses the same kernels.

    restrict_avx2.py LIBRARY COPY
"""

import re
import subprocess
import sys

XGETBV = bytes([0x0F, 0x01, 0xD0])
AVX_ALONE = bytes([0xB0, 0x07, 0x90])  # mov $7, %al; nop
CPUID_VNNI = bytes([0x0F, 0xA2, 0xA8, 0x10])  # cpuid; test $0x10, %al
NO_VNNI = bytes([0x31, 0xC0, 0xA8, 0x10])  # xor %eax, %eax; test $0x10, %al


def text_section(path):
    """Its address and its place in the file."""
    listing = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        f = line.split()
        if len(f) > 5 and f[1] == ".text":
            return int(f[3], 16), int(f[5], 16)
    sys.exit(f"restrict_avx2: {path}: no .text")


def places(path, instruction):
    """Offsets of the instruction in the file: bytes that only look like it are left alone."""
    address, offset = text_section(path)
    command = ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        found = [re.match(r"\s*([0-9a-f]+):", line) for line in listing.stdout if instruction in line]
    if not found:
        sys.exit(f"restrict_avx2: {path}: no {instruction}; this version asks in another way")
    return [int(m[1], 16) - address + offset for m in found]


def main(library, copy):
    with open(library, "rb") as f:
        data = bytearray(f.read())
    for at in places(library, "xgetbv"):
        if data[at : at + 3] != XGETBV:
            sys.exit(f"restrict_avx2: {library}: no xgetbv at {at:#x}")
        data[at : at + 3] = AVX_ALONE
    vnni = [at for at in places(library, "cpuid") if data[at : at + 4] == CPUID_VNNI]
    if not vnni:
        sys.exit(f"restrict_avx2: {library}: AVX-VNNI is not asked for as it was")
    for at in vnni:
        data[at : at + 4] = NO_VNNI
    with open(copy, "wb") as f:
        f.write(data)


main(*sys.argv[1:])
