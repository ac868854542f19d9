# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of `load`: samples a second out of its DataLoader, as JSON.

    torch_load.py mnist|cifar10 PATH BATCH none|standard WORKERS SAMPLES

torchvision's own data sets and transforms; CIFAR-10 is read from the binary files into what
torchvision's class holds, since it knows only the pickled ones.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torchvision
from torchvision import transforms


class Digits(torchvision.datasets.MNIST):
    """The files where they lie, instead of below MNIST/raw."""

    @property
    def raw_folder(self):
        return self.root

    def _check_exists(self):
        return True


class Objects(torchvision.datasets.CIFAR10):
    def __init__(self, root, transform):
        torchvision.datasets.VisionDataset.__init__(self, root, transform=transform)
        records = [
            np.fromfile(Path(root) / f"data_batch_{i}.bin", np.uint8).reshape(-1, 3073)
            for i in range(1, 6)
        ]
        every = np.concatenate(records)
        self.targets = every[:, 0].tolist()
        self.data = np.ascontiguousarray(every[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def data_set(name, path, augment):
    steps = [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()]
    steps = steps if augment == "standard" else []
    if name == "mnist":
        norm = transforms.Normalize((0.1307,), (0.3081,))
        return Digits(path, train=True, transform=transforms.Compose([*steps, transforms.ToTensor(), norm]))
    norm = transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    return Objects(path, transforms.Compose([*steps, transforms.ToTensor(), norm]))


def main():
    name, path, batch, augment, workers, samples = sys.argv[1:]
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        data_set(name, path, augment),
        batch_size=int(batch), shuffle=True, num_workers=int(workers),
    )  # fmt: skip
    start, seen = None, 0
    for images, _ in loader:
        if start is None:  # workers have started, the first batch is there
            start = time.perf_counter()
            continue
        seen += len(images)
        if seen >= int(samples):
            break
    seconds = time.perf_counter() - start
    print(json.dumps({"samples_per_s": seen / seconds, "torch": torch.__version__}), flush=True)
    os._exit(0)  # workers in the middle of their batches would complain


if __name__ == "__main__":
    main()
