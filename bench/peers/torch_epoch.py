# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of `epoch`: LeNet-5 on MNIST by SGD, as JSON.

    torch_epoch.py PATH WORKERS THREADS BATCH cosine|constant EPOCHS SAMPLES GOAL

Ends early once the test accuracy reaches GOAL (over 1: never), or after SAMPLES images (0: all).
"""

import json
import math
import os
import sys
import time

import torch
from torch.nn import functional
from torchvision import transforms

import torch_load
import torch_networks


def test_set(path):
    """As one tensor: the test is not what is timed here."""
    steps = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    data = torch_load.Digits(path, train=False, transform=steps)
    images = (data.data.float().div(255).unsqueeze(1) - 0.1307) / 0.3081
    return images, data.targets


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum(
            (model(images[i : i + 1000]).argmax(1) == labels[i : i + 1000]).sum().item()
            for i in range(0, len(labels), 1000)
        )
    model.train()
    return right / len(labels)


def main():
    path, workers, threads, batch, rate, epochs, samples, goal = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    loader = torch.utils.data.DataLoader(
        torch_load.data_set("mnist", path, "none"),
        batch_size=int(batch), shuffle=True, num_workers=int(workers),
        persistent_workers=int(workers) > 0,
    )  # fmt: skip
    images, labels = test_set(path)
    model = torch_networks.build("lenet5", 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    steps = int(epochs) * len(loader)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * s / steps)) if rate == "cosine" else 1
    )
    rows, seen, begin = [], 0, time.perf_counter()
    for _ in range(int(epochs)):
        start = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
            seen += len(y)
            if int(samples) and seen >= int(samples):
                break
        seconds = time.perf_counter() - start
        right = accuracy(model, images, labels)
        rows.append({"epoch_s": seconds, "accuracy": right, "at_s": time.perf_counter() - begin})
        if right >= float(goal) or (int(samples) and seen >= int(samples)):
            break
    print(json.dumps({"torch": torch.__version__, "images": seen, "epochs": rows}), flush=True)
    os._exit(0)  # workers in the middle of their batches would complain


if __name__ == "__main__":
    main()
