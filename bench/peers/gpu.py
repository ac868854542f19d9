# SPDX-License-Identifier: Apache-2.0
"""Edgewise beside PyTorch on a CUDA card, in turns; a table as Markdown, every round as JSON.

    gpu.py EDGEWISE OUT.json [--quick] [--networks a,b] [--precisions fp32,fp16] [--compile]
           [--layouts nhwc] [--kinds train] [--batches 1]

PyTorch's time is the replay of a CUDA graph of the whole inference or training step, with cuDNN's
benchmark mode, in both memory layouts and, with --compile, through torch.compile; the best counts.
Ours is the whole step without copies of inputs and outputs, which a replay does not have either.
Memory is what the device has to hold: the plan of ours (cuDNN's workspace apart), the most that
PyTorch had allocated for the best variant (its workspaces included).
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

import torch_networks

TRAIN = [
    ("lenet5", 28, 16), ("resnet18", 32, 16), ("mobilenet_v2", 32, 64), ("mobilenet_v3_large", 224, 16),
    ("squeezenet1_1", 224, 16), ("alexnet", 224, 16), ("resnet18", 224, 16), ("resnet50", 224, 64),
]  # fmt: skip
INFER = [
    "lenet5", "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "squeezenet1_1",
    "shufflenet_v2_x1_0", "densenet121", "vgg11", "alexnet",
]  # fmt: skip
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def set_precision(precision):
    tensor_cores = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = tensor_cores
    torch.backends.cudnn.allow_tf32 = tensor_cores
    torch.backends.cudnn.benchmark = True


def captured(work):
    """The replay of a CUDA graph of work(), after a few runs on the side as capturing asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return lambda keep=work: graph.replay()  # what work() holds is what the graph reads


def model_of(network, side, batch, layout):
    torch.manual_seed(1)
    classes = 10 if network == "lenet5" else 1000
    model = torch_networks.build(network, classes).cuda()
    x = torch.randn(batch, 1 if network == "lenet5" else 3, side, side, device="cuda")
    if layout == "nhwc":
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    return model, x, torch.randint(0, classes, (batch,), device="cuda")


def inference(network, side, batch, precision, layout, compiled):
    model, x, _ = model_of(network, side, batch, layout)
    model.eval()
    if precision in HALF:
        model, x = model.to(HALF[precision]), x.to(HALF[precision])
    if compiled:
        model = torch.compile(model)

    def work():
        with torch.no_grad():
            return model(x)

    return captured(work)


def training(network, side, batch, precision, layout, compiled):
    model, x, labels = model_of(network, side, batch, layout)
    model.train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    forward = torch.compile(model) if compiled else model

    def work():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", HALF.get(precision, torch.bfloat16), precision in HALF):
            loss = loss_of(forward(x), labels)
        loss.backward()
        optimizer.step()

    return captured(work)


def time_ms(replay, iters):
    ms = []
    for _ in range(iters):
        start = time.perf_counter_ns()
        replay()
        torch.cuda.synchronize()
        ms.append((time.perf_counter_ns() - start) * 1e-6)
    return statistics.median(ms)


def theirs(case, compiled, layouts, iters):
    """By variant its time, replay and bytes; those that fail are left out."""
    make = training if case["train"] else inference
    found = {}
    for layout in layouts:
        for c in (False, True) if compiled else (False,):
            name = layout + (" compiled" if c else "")
            try:
                before = torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                replay = make(case["network"], case["side"], case["batch"], case["precision"], layout, c)
                time_ms(replay, 5)
                used = torch.cuda.max_memory_allocated() - before
                found[name] = (time_ms(replay, iters), replay, used)
            except Exception as e:  # a variant that PyTorch cannot capture is no result
                print(f"  torch {name}: {str(e).splitlines()[0]}", file=sys.stderr)
    return found


def ours(edgewise, case, iters):
    command = [
        edgewise, "bench", case["network"], "--device", "cuda", "--precision", case["precision"],
        "--batch", str(case["batch"]), "--warmup", "10", "--iters", str(iters), "--json",
    ]  # fmt: skip
    if case["network"] != "lenet5":
        command += ["--input", f"{case['side']}x{case['side']}x3"]
    command += ["--train"] if case["train"] else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout)


def measure(edgewise, case, args):
    set_precision(case["precision"])
    iters = 10 if args.quick else 30
    found = theirs(case, args.compile, args.layouts.split(","), iters)
    if not found:
        return None
    best = min(found, key=lambda k: found[k][0])
    rounds = []
    for _ in range(1 if args.quick else 2):
        r = ours(edgewise, case, iters)
        rounds.append({"ours": r["steps_ms"], "with_copies": r["median_ms"],
                       "bytes": r["arena_bytes"], "torch": time_ms(found[best][1], iters),
                       "torch_bytes": found[best][2]})
    for replay in found.values():
        del replay
    torch.cuda.empty_cache()
    return {**case, "variant": best, "rounds": rounds}


def cases(args):
    for precision in args.precisions.split(","):
        kinds = [(n, s, b, True) for n, s, b in TRAIN if precision != "fp16"]
        kinds += [(n, 28 if n == "lenet5" else 224, int(b), False)
                  for n in INFER if precision != "bf16" for b in args.batches.split(",")]
        for network, side, batch, train in kinds:
            if ("train" if train else "infer") not in args.kinds.split(","):
                continue
            if not args.networks or network in args.networks.split(","):
                yield {"network": network, "side": side, "batch": batch, "train": train,
                       "precision": precision}


def show(result):
    mid = {k: statistics.median(r[k] for r in result["rounds"]) for k in result["rounds"][0]}
    print(f"| {result['network']} at {result['side']} | {'train' if result['train'] else 'infer'} "
          f"| {result['batch']} | {result['precision']} | {mid['ours']:.3f} | {mid['with_copies']:.3f} "
          f"| {mid['torch']:.3f} ({result['variant']}) | {mid['torch'] / mid['ours']:.2f} "
          f"| {mid['bytes'] / 1e6:.0f} | {mid['torch_bytes'] / 1e6:.0f} |", flush=True)
    return mid["torch"] / mid["ours"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("edgewise")
    parser.add_argument("out")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--networks", default="")
    parser.add_argument("--layouts", default="nchw,nhwc")
    parser.add_argument("--kinds", default="train,infer")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--precisions", default="fp32,tf32,bf16,fp16")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    print("| network | what | batch | precision | ours, ms | with copies | PyTorch, ms | ratio "
          "| ours, MB | PyTorch, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    results, ratios = [], {}
    for case in cases(args):
        result = measure(args.edgewise, case, args)
        if not result:
            continue
        results.append(result)
        key = "training" if case["train"] else f"inference, batch {case['batch']}"
        ratios.setdefault((key, case["precision"]), []).append(show(result))
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    for (what, precision), list_ in sorted(ratios.items()):
        print(f"\n{what}, {precision}: geometric mean {statistics.geometric_mean(list_):.2f}, "
              f"least {min(list_):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
