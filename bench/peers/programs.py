# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared, each called in its best setting, and the machine they are on."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import measure
import onnx_networks
from measure import Failure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build" / "peers"
CALIBRATION = 16  # images that ranges of quantised files are measured on
EDGEWISE = os.environ.get("EDGEWISE", str(ROOT / "build/release/src/edgewise"))


# ---- The machine ------------------------------------------------------------


def cpu():
    """The model's name and the flags, as Linux tells them."""
    name, flags = platform.machine(), []
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = value.split()
                break
    return name, flags


def machine():
    commit = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return {
        "cpu": cpu()[0],
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "commit": commit,
        "edgewise": measure.call([EDGEWISE, "version"]).strip(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def library():
    """ONNX Runtime's, out of its npm package."""
    arch = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    found = sorted(OUT.glob(f"node_modules/onnxruntime-node/bin/*/linux/{arch}/libonnxruntime.so*"))
    if not found:
        sys.exit(f"peers: onnxruntime-node has no library for linux/{arch}")
    return found[0]


# ---- The sides --------------------------------------------------------------


def zoo():
    """By name: what `edgewise models` says, and the input of those that onnx_networks.py has."""
    own = {name: {"name": name, "input": size} for name, size in onnx_networks.INPUTS.items()}
    return {**own, **{m["name"]: m for m in measure.call_json([EDGEWISE, "models", "--json"])}}


def export(case, batch):
    """The file that both sides read, with random weights; batch 0 leaves it open."""
    path = OUT / f"{case.name}.onnx"
    if case.network in onnx_networks.INPUTS:
        onnx_networks.write(case.network, path)
        return path
    command = [EDGEWISE, "export", case.network, *case.options(), "--batch", batch, "-o", path]
    measure.call(command)
    return path


def quantize(path, shape):
    """A file in QDQ form, all layers of it that can be: random weights have no accuracy to lose."""
    out = path.with_suffix(".int8.onnx")
    channels, size = shape[1], shape[-1]
    kind = "motion" if len(shape) == 5 else "shapes" if channels == 3 else "digits"
    data = f"synthetic:kind={kind},size={size},channels={channels}:{CALIBRATION}"
    measure.call(
        [EDGEWISE, "quantize", path, "--calib", data, "--mean", 0.5, "--std", 0.25, "--time=false",
         "--equalize=false", "--correct-bias=false", "--min-sqnr", -100, "-o", out]
    )  # fmt: skip
    return out


def ort(path, shape, threads, *what):
    dims = ",".join(str(d) for d in shape)
    return measure.call([OUT / "ort_bench", library(), path, dims, threads, *what])


def ort_side(path, shape, threads):
    return lambda warmup, iters: json.loads(ort(path, shape, threads, "time", warmup, iters))


def restricted(isa):
    """Whether this CPU has more than the instruction set that both sides are to use."""
    return isa == "avx2" and "avx512f" in cpu()[1]


def edgewise_side(what, options, threads, isa=None):
    env = {"EW_ISA": "avx2"} if restricted(isa) else {}

    def side(warmup, iters):
        command = [EDGEWISE, "bench", what, *options, "--threads", threads, "--json"]
        return measure.call_json([*command, "--warmup", warmup, "--iters", iters], env)

    return side


def torch_isa(isa):
    """The switches of PyTorch and of the libraries below it, OpenBLAS and oneDNN."""
    if restricted(isa):
        return {
            "ATEN_CPU_CAPABILITY": "avx2",
            "OPENBLAS_CORETYPE": "Haswell",
            "DNNL_MAX_CPU_ISA": "AVX2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
        }
    # PyTorch starts with AVX2 where the CPU has more.
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(cpu()[1]):
        return {"ATEN_CPU_CAPABILITY": "avx512"}
    return {}


def torch_side(case, shape, classes, threads, layout, isa=None):
    # PyTorch starts with one thread.
    env = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), **torch_isa(isa)}
    script = [sys.executable, HERE / "torch_bench.py", case.network, classes]
    dims = ",".join(str(d) for d in shape)

    def side(warmup, iters):
        r = measure.call_json([*script, dims, threads, layout, warmup, iters], env)
        if not any("openblas" in b or b == "MKL" for b in r["blas"]):
            raise Failure(f"PyTorch runs on {' '.join(r['blas'])}, which is slow; it needs OpenBLAS")
        return r

    return side
