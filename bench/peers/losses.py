# SPDX-License-Identifier: Apache-2.0
"""The first losses of a training, here and in PyTorch, from the same weights and batches.

    losses.py EDGEWISE [NETWORK...]

Both read one made-up data set in its stored order.  Exits with 1 where a loss differs by more than
1e-3, with 77 where there is no PyTorch.
"""

import json
import mmap
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

try:
    import torch

    import torch_networks
except ImportError as missing:
    print(f"skip losses: {missing}")
    sys.exit(77)

import randomize

BATCH, STEPS, CLASSES = 128, 10, 10
MEAN, STD = 0.5, 0.25
LR, MOMENTUM, DECAY = 0.0001, 0.9, 5e-4
TOLERANCE = 1e-3
NETWORKS = ["mobilenet_v2_cifar", "resnet18"]


def make_data(folder, rng):
    """Coarse patterns, brighter where the class says so, as CIFAR-10's files have them.

    Images that are mere noise all look alike behind the last pooling; batch norms then divide by
    next to nothing, and PyTorch in float32 and float64 part after three steps.
    """
    n = BATCH * STEPS
    labels = rng.integers(0, CLASSES, n)
    coarse = rng.integers(0, 200, (n, 3, 4, 4))
    coarse[np.arange(n), :, labels // 4, labels % 4] += 55
    images = coarse.repeat(8, axis=2).repeat(8, axis=3).reshape(n, 3, 1024)
    records = np.concatenate([labels[:, None], images.reshape(n, -1)], 1).astype(np.uint8)
    (folder / "data_batch_1.bin").write_bytes(records.tobytes())
    (folder / "test_batch.bin").write_bytes(records[:BATCH].tobytes())
    return images.reshape(n, 3, 32, 32).astype(np.float32), labels


def weights_of(path):
    """All float32 tensors of an ONNX file by name."""
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {
            name: torch.from_numpy(np.frombuffer(data[a:b], "<f4").reshape(dims).copy())
            for name, dims, (a, b) in randomize.tensors(data)
        }


def edgewise_losses(edgewise, network, folder):
    options = ["--data", folder, "--batch", BATCH, "--epochs", 1, "--lr", LR, "--momentum", MOMENTUM,
               "--weight-decay", DECAY, "--schedule", "constant", "--mean", MEAN, "--std", STD,
               "--no-shuffle", "--val-split", 0, "--seed", 1, "--classes", CLASSES, "--input", "32x32x3",
               "-o", folder / network]  # fmt: skip
    command = [edgewise, "train", network, *options]
    subprocess.run([str(c) for c in command], check=True, capture_output=True)
    with open(folder / network / "batches.jsonl", encoding="ascii") as f:
        return [json.loads(line)["loss"] for line in f]


def torch_losses(model, images, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=DECAY)
    x = torch.from_numpy((images / 255 - MEAN) / STD)
    y = torch.from_numpy(labels)
    losses = []
    for i in range(0, len(y), BATCH):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[i : i + BATCH]), y[i : i + BATCH])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(edgewise, network, folder):
    images, labels = make_data(folder, np.random.default_rng(7))
    path = folder / f"{network}.onnx"
    export = [edgewise, "export", network, "--seed", 1, "--classes", CLASSES, "--input", "32x32x3"]
    subprocess.run([str(c) for c in [*export, "-o", path]], check=True, capture_output=True)
    model = torch_networks.build(network, CLASSES).train()
    weights = weights_of(path)
    known = {name: w for name, w in weights.items() if name in model.state_dict()}
    missing, _ = model.load_state_dict(known, strict=False)
    if any("num_batches" not in name for name in missing):
        raise ValueError(f"{network}: weights are missing: {missing}")
    theirs = torch_losses(model, images, labels)
    ours = edgewise_losses(edgewise, network, folder)
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    for step, (a, b) in enumerate(zip(ours, theirs)):
        print(f"  {network} step {step + 1:2}: {a:.6f} {b:.6f} {abs(a - b):.1e}")
    return worst if len(ours) == len(theirs) == STEPS else float("inf")


def main():
    edgewise, wanted = sys.argv[1], sys.argv[2:] or NETWORKS
    failed = False
    for network in wanted:
        with tempfile.TemporaryDirectory() as folder:
            worst = compare(edgewise, network, Path(folder))
        good = worst <= TOLERANCE
        failed |= not good
        print(f"{'ok' if good else 'FAIL'} losses {network}: differ by at most {worst:.1e}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
