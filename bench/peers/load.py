# SPDX-License-Identifier: Apache-2.0
"""Edgewise's loader beside PyTorch's DataLoader: the same files, batches and augmentation.

Rounds are interleaved, A B A B, one process at a time; both sides are warm: the files are in the page
cache, and what either does once (starting workers, the first epoch) is left out of its time.
"""

import argparse
import json
import statistics
import sys

import measure
import programs
import table

CASES = [
    {"name": "mnist", "title": "MNIST", "batch": 16, "augment": "none"},
    {"name": "cifar10", "title": "CIFAR-10, crop and flip", "batch": 128, "augment": "standard"},
]
WORKERS = (0, 2)


def stored(name):
    """Where the data set lies; it is fetched where it is not there."""
    return measure.call_json([programs.EDGEWISE, "data", "get", name, "--json"])["path"]


def edgewise(case, workers):
    def side():
        r = measure.call_json(
            [programs.EDGEWISE, "data", "bench", case["path"], "--batch", case["batch"], "--augment",
             case["augment"], "--workers", workers, "--epochs", 4, "--json"]
        )  # fmt: skip
        return statistics.median(e["samples_per_s"] for e in r["epochs"][1:])

    return side


def torch(case, workers, samples):
    def side():
        command = [sys.executable, programs.HERE / "torch_load.py", case["name"], case["path"]]
        command += [case["batch"], case["augment"], workers, samples]
        return measure.call_json(command, {"OMP_NUM_THREADS": "1"})["samples_per_s"]

    return side


def run_case(case, workers, rounds, samples):
    row = {"title": case["title"], "batch": case["batch"], "workers": workers}
    both = {"edgewise": edgewise(case, workers), "pytorch": torch(case, workers, samples)}
    rates = {name: [] for name in both}
    for _ in range(rounds):
        for name, side in both.items():
            rates[name].append(side())
    ratios = [a / b for a, b in zip(rates["edgewise"], rates["pytorch"])]
    row.update({name: statistics.median(r) for name, r in rates.items()})
    row.update(ratio=statistics.median(ratios), low=min(ratios), high=max(ratios), rounds=rates)
    return row


def markdown(machine, rows):
    head = ["data", "batch", "workers", "PyTorch, samples/s", "Edgewise, samples/s", "ratio", "rounds"]
    lines = [
        [r["title"], str(r["batch"]), str(r["workers"]), f"{r['pytorch']:,.0f}", f"{r['edgewise']:,.0f}",
         f"{r['ratio']:.0f}", f"{r['low']:.0f} to {r['high']:.0f}"]
        for r in rows
    ]  # fmt: skip
    where = f"{machine['cpu']}, {machine['cpus']} CPUs, load {machine['load']:.1f}; {machine['edgewise']}"
    out = ["## load", "", f"{where}, commit {machine['commit']}, {machine['time']}.", ""]
    return "\n".join(out + table.rows_of(head, "lrrrrrr", lines))


def main():
    p = argparse.ArgumentParser(prog="bench/peers/run load", description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="one short round: to see that it works")
    o = p.parse_args(sys.argv[2:])
    rounds, samples = (1, 4000) if o.quick else (5, 10000)
    machine, rows = programs.machine(), []
    progress = measure.Progress(len(CASES) * len(WORKERS))
    for case in CASES:
        case["path"] = stored(case["name"])
        for workers in WORKERS:
            progress.show(f"{case['title']}, workers: {workers}")
            rows.append(run_case(case, workers, rounds, samples))
            progress.step()
    progress.clear()
    programs.OUT.mkdir(parents=True, exist_ok=True)
    path = programs.OUT / "load.json"
    path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(markdown(machine, rows))


if __name__ == "__main__":
    try:
        main()
    except measure.Failure as e:
        sys.exit(f"peers: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
