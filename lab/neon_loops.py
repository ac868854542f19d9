#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Utilisation of the pipelines of Cortex-A72 and Cortex-A57 by the NEON inner loops, by llvm-mca's models.

  lab/neon_loops.py > lab/neon-loops.md

Compiles the kernels as the aarch64 build does, to assembly; of every function in the list below
takes the innermost loop (or, if everything is unrolled, the basic block) with the most
multiplications, and prints llvm-mca's cycles per iteration, and the cycles of the same multiplications
alone, without dependencies; the share is the ratio of the two.  Needs aarch64-linux-gnu-gcc and llvm-mca
(Debian: gcc-aarch64-linux-gnu, llvm).  The models have no caches: these are bounds, not times."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src/backend/cpu/kernel"
CORES = ["cortex-a72", "cortex-a57"]
MULTIPLY = re.compile(r"^(fmla|fmls|fmul|smull2?|umull2?|smlal2?|umlal2?|mla|mul)$")
VECTOR = re.compile(r"\bv\d+\.(\d+)([bhsd])\b")

# file, function (a regular expression; the loop with the most multiplications of all that match)
LOOPS = [
    ("gemm/k_micro.c", r"panel_8x20", "GEMM, panel, 8 x 8"),
    ("gemm/k_micro.c", r"direct_8x20", "GEMM, rows in place, 8 x 8"),
    ("gemm/k_micro.c", r"outer_8x20", "GEMM, filter gradient, 8 x 8"),
    ("gemm/k_micro.c", r"panel_4x20", "GEMM, panel, 4 x 8"),
    ("depthwise/k_depthwise.c", r"whole_3_1_7_CLAMP_0", "depthwise 3x3, stride 1"),
    ("depthwise/k_depthwise.c", r"whole_3_2_7_CLAMP_0", "depthwise 3x3, stride 2"),
    ("depthwise/k_depthwise.c", r"whole_5_1_7_CLAMP_0", "depthwise 5x5, stride 1"),
    ("depthwise/k_depthwise.c", r"whole_5_2_7_CLAMP_0", "depthwise 5x5, stride 2"),
    ("int8/k_int8_micro.c", r"rows_8x2", "int8 GEMM, 8 x 16"),
    ("int8/k_int8_micro.c", r"pairs_8", "int8 GEMM, 16-bit pairs, 8 rows"),
    ("int8/k_int8_depthwise.c", r".*run.*", "int8 depthwise"),
]


NOTES = """
Loops below 75 %, and why:

- *depthwise, stride 2*: neighbouring outputs share few inputs, so there are 109 loads for 60
  multiply-adds (3x3) and 270 for 168 (5x5), and either core loads once a cycle.
- *int8 depthwise*: without byte products every operand is widened to 16 bits first (64 uxtl and 64
  eor for 128 products), and there are more loads (133) than products.
"""


def assembly(source, folder):
    out = Path(folder) / (Path(source).stem + ".s")
    if out.exists():
        return out.read_text()
    contract = "off" if source.startswith("int8/") else "fast"
    subprocess.run(
        ["aarch64-linux-gnu-gcc", "-O3", "-std=c11", "-D_GNU_SOURCE", f"-ffp-contract={contract}",
         "-fno-math-errno", "-fno-tree-loop-distribute-patterns", f"-I{ROOT}/src",
         f"-I{ROOT}/include", "-DEW_ISA=neon", "-DEW_ISA_FLOAT=neon", "-DEW_ISA_IS_neon=1",
         "-S", "-o", out, KERNELS / source],
        check=True,
    )  # fmt: skip
    return out.read_text()


def functions(text):
    """Name and lines of each, without directives."""
    name, lines = None, []
    for line in text.splitlines():
        label = re.match(r"^([A-Za-z_][\w.]*):", line)
        if label:
            if name:
                yield name, lines
            name, lines = label.group(1), []
        elif name and (line.startswith(".L") or re.match(r"^\t[a-z]", line)):
            lines.append(line.strip())
    if name:
        yield name, lines


def mnemonic(line):
    return line.split(None, 1)[0] if line and not line.endswith(":") else ""


def innermost(lines):
    """Bodies between a label and a branch back to it, without another loop inside."""
    at = {}
    for i, line in enumerate(lines):
        if line.endswith(":"):
            at[line[:-1]] = i
            continue
        target = re.search(r"(\.L\w+)$", line)
        first = at.get(target.group(1)) if target and mnemonic(line)[0] in "bct" else None
        if first is None or mnemonic(line) == "bl":
            continue
        body = lines[first + 1 : i + 1]
        inside = any(
            re.search(r"(\.L\w+)$", b) and at.get(re.search(r"(\.L\w+)$", b).group(1), -1) > first
            for b in body[:-1]
        )
        if not inside:
            yield [b for b in body if not b.endswith(":")]


def blocks(lines):
    """Pieces without a label or a branch, for code that is unrolled whole."""
    body = []
    for line in lines:
        if line.endswith(":") or re.match(r"^(b\.?\w*|cbn?z|tbn?z|ret)$", mnemonic(line)):
            yield body
            body = []
        else:
            body.append(line)
    yield body


def products(body):
    return [b for b in body if MULTIPLY.match(mnemonic(b)) and VECTOR.search(b)]


def cycles(body, core):
    """Of one iteration, by llvm-mca; branches are left out, as it has no model of them."""
    plain = [b for b in body if not re.match(r"^(b\.?\w*|cbn?z|tbn?z)$", mnemonic(b))]
    done = subprocess.run(
        ["llvm-mca", "-mtriple=aarch64", f"-mcpu={core}", "-iterations=200"],
        input="\n".join(plain) + "\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(re.search(r"Total Cycles:\s+(\d+)", done.stdout).group(1)) / 200


def alone(body, core):
    """The multiplications with accumulators of their own."""
    lines = []
    for i, line in enumerate(products(body)):
        head, rest = line.split(None, 1)
        lines.append(f"{head} " + re.sub(r"v\d+", f"v{16 + i % 16}", rest, count=1))
    # Operands that nothing writes, so that only the multiplications wait for each other.
    lines = [re.sub(r", v\d+\.", ", v15.", line) for line in lines]
    return cycles(lines, core)


def main():
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    version = subprocess.run(["llvm-mca", "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"LLVM version ([\d.]+)", version.stdout).group(1)
    print("# NEON inner loops\n")
    print(f"Made by `lab/neon_loops.py` (llvm-mca {release}), which describes the method.\n")
    print("| loop | function | multiplications | " + " | ".join(
        f"{c}: cycles | alone | share" for c in CORES) + " |")  # fmt: skip
    print("| --- | --- | ---: |" + " ---: |" * (3 * len(CORES)))
    with tempfile.TemporaryDirectory() as folder:
        for source, wanted, title in LOOPS:
            found = [
                (len(products(body)), name, body)
                for name, lines in functions(assembly(source, folder))
                if re.fullmatch(wanted, name)
                for body in [*innermost(lines), *blocks(lines)]
            ]
            n, name, body = max(found, key=lambda f: f[0], default=(0, "", []))
            if n == 0:
                sys.exit(f"{source}: no loop of {wanted}")
            row = []
            for core in CORES:
                loop, least = cycles(body, core), alone(body, core)
                row.append(f"{loop:.1f} | {least:.1f} | {100 * least / loop:.0f} %")
            print(f"| {title} | `{name}` | {n} | " + " | ".join(row) + " |", flush=True)
    print(NOTES, end="")


if __name__ == "__main__":
    main()
