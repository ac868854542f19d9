#!/usr/bin/env python3
"""A look at a network from Python: its prediction for an image, its speed here, and where the time goes.

    python3 look.py [NETWORK [IMAGE]]

NETWORK is an engine, an ONNX file, a checkpoint or a name of `edgewise models`.  Each `# %%` begins a
cell, so that editors and notebooks (jupytext) can run the parts one by one.
"""
# %% What to look at
import sys
from pathlib import Path

import edgewise

here = Path(__file__).resolve().parent
shipped = [here / "three.png", here.parent / "docs/pictures/three.png", Path("/usr/share/doc/edgewise/examples/three.png")]
network = sys.argv[1] if len(sys.argv) > 1 else "lenet5-mnist"
image = sys.argv[2] if len(sys.argv) > 2 else next(str(p) for p in shipped if p.exists())

# %% Open it: compiled for this machine, unless it is an engine already
net = edgewise.open(network)
print(f"edgewise {edgewise.version()}: {network}, {net.parameters:,} parameters")
for port in net.inputs + net.outputs:
    print(f"  {port.name}: {port.shape} of {port.dtype}")

# %% What does it predict?
for name, probability in net.classify(image, top=3):
    print(f"{probability:7.1%}  {name}")

# %% How fast is it?
times = net.bench(runs=50)
print(f"median {times.median_ms:.3f} ms, p99 {times.p99_ms:.3f} ms")

# %% Where does the time go?
steps = sorted(net.profile(), key=lambda step: -step.us)
total = sum(step.us for step in steps) or 1
for step in steps[:5]:
    print(f"{step.us / total:6.1%}  {step.name} ({step.kernel})")

# %%
net.close()
