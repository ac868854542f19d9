# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side: times training steps of one network in one memory layout, prints JSON.

    torch_bench.py NETWORK CLASSES BATCH,C,[T,]H,W THREADS nchw|nhwc WARMUP ITERS

Rounds, and which layout is the better one, are left to peers.py, which also sets the environment.
"""

import json
import statistics
import sys
import time

import torch
from torch import nn

import torch_networks


def resident_peak():
    """The most that this process has had in memory; getrusage would count its parent's."""
    with open("/proc/self/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def blas():
    """The BLAS in use: the reference one would make PyTorch look slow."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        names = {line.rsplit("/", 1)[-1].strip() for line in f if ".so" in line}
    own = ["MKL"] if torch.backends.mkl.is_available() else []  # linked into PyTorch's own builds
    return sorted(n for n in names if "blas" in n) + own


def steps(network, classes, shape, layout):
    """A function that does one step: forward, backward, SGD with momentum."""
    torch.manual_seed(1)
    model = torch_networks.build(network, classes).train()
    x = torch.randn(shape)
    if layout == "nhwc":
        last = torch.channels_last_3d if len(shape) == 5 else torch.channels_last
        model = model.to(memory_format=last)
        x = x.to(memory_format=last)
    rebuilds = network in torch_networks.AUTOENCODERS
    target = x if rebuilds else torch.randint(0, classes, (shape[0],))
    loss_of = nn.MSELoss() if rebuilds else nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), target).backward()
        optimizer.step()

    return step, sum(p.numel() for p in model.parameters())


def main():
    network, classes, shape, threads, layout, warmup, iters = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_num_interop_threads(1)
    step, params = steps(network, int(classes), [int(d) for d in shape.split(",")], layout)
    for _ in range(int(warmup)):
        step()
    ms = []
    for _ in range(int(iters)):
        start = time.perf_counter_ns()
        step()
        ms.append((time.perf_counter_ns() - start) * 1e-6)
    capability = torch.__config__.show().split("CPU capability usage: ")[-1].split()[0]
    print(json.dumps({
        "version": torch.__version__,
        "capability": capability,
        "blas": blas(),
        "threads": torch.get_num_threads(),
        "params": params,
        "runs": len(ms),
        "median_ms": statistics.median(ms),
        "min_ms": min(ms),
        "rss_peak_bytes": resident_peak(),
    }))


if __name__ == "__main__":
    main()
