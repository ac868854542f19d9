# SPDX-License-Identifier: Apache-2.0
"""An epoch of LeNet-5 on MNIST, loading included, and the time to 99 %, beside PyTorch.

The same network, batches of 16, SGD at 0.01 with momentum 0.9.  PyTorch gets every worker setting in
each round; its best one counts.  On the way to 99 % Edgewise has a cosine over three epochs, PyTorch
the same and, by itself, the constant rate that its examples use.  One process at a time.
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import measure
import programs
import table

BATCH, GOAL = 16, 0.99
EPOCHS, MOST_EPOCHS = 3, 8  # of the cosine; of a constant rate
WORKERS = (0, 1, 2)  # of PyTorch
SETTINGS = (("0", None), ("1", "1"))  # of Edgewise: workers, and threads (None: all)


def stored():
    return measure.call_json([programs.EDGEWISE, "data", "get", "mnist", "--json"])["path"]


def edgewise(path, setting, epochs, samples):
    """Rows of epochs.csv: wall and validation seconds, accuracy."""
    workers, threads = setting
    with tempfile.TemporaryDirectory() as folder:
        command = [programs.EDGEWISE, "train", "lenet5", "--data", path, "--batch", BATCH, "--lr", 0.01,
                   "--momentum", 0.9, "--epochs", epochs, "--workers", workers, "--samples", samples,
                   "--val-split", 0, "-o", Path(folder) / "run", "--json"]  # fmt: skip
        measure.call(command + (["--threads", threads] if threads else []))
        with open(Path(folder) / "run" / "epochs.csv", encoding="ascii") as f:
            return [
                {k: float(row[k]) for k in ("wall_s", "eval_s", "accuracy", "images")}
                for row in csv.DictReader(f)
            ]


def torch(path, workers, samples=0, goal=2, rate="cosine", epochs=1):
    threads = os.cpu_count() or 1
    env = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [sys.executable, programs.HERE / "torch_epoch.py", path, workers, threads, BATCH, rate,
               epochs, samples, goal]  # fmt: skip
    return measure.call_json(command, env)


def until_goal(rows):
    """Seconds until the goal was seen, or None."""
    at = 0
    for r in rows:
        at += r["wall_s"] + r["eval_s"]
        if r["accuracy"] >= GOAL:
            return at
    return None


def one_round(path, samples, progress):
    """Seconds per 60,000 images of each setting."""
    times = {"edgewise": {}, "pytorch": {}}
    for setting in SETTINGS:
        progress.show(f"edgewise, workers: {setting[0]}")
        r = edgewise(path, setting, 1, samples)[0]
        times["edgewise"][setting[0]] = r["wall_s"] * 60000 / r["images"]
        progress.step()
    for workers in WORKERS:
        progress.show(f"pytorch, workers: {workers}")
        r = torch(path, workers, samples)
        times["pytorch"][str(workers)] = r["epochs"][0]["epoch_s"] * 60000 / r["images"]
        progress.step()
    return times


def best(rounds, side):
    """The setting with the lowest median, and its times."""
    settings = rounds[0][side]
    name = min(settings, key=lambda s: statistics.median(r[side][s] for r in rounds))
    return name, [r[side][name] for r in rounds]


def markdown(machine, result):
    where = f"{machine['cpu']}, {machine['cpus']} CPUs, load {machine['load']:.1f}; {machine['edgewise']}"
    out = ["## epoch", "", f"{where}, commit {machine['commit']}, {machine['time']}.", ""]
    head = ["LeNet-5 on MNIST, batch 16", "PyTorch", "Edgewise", "ratio", "rounds"]
    low, high = min(result["ratios"]), max(result["ratios"])
    lines = [[
        f"an epoch, s (workers {result['torch_workers']} and {result['workers']})",
        f"{result['torch_s']:.1f}", f"{result['epoch_s']:.2f}",
        f"{statistics.median(result['ratios']):.1f}", f"{low:.1f} to {high:.1f}",
    ]]  # fmt: skip
    goal = result.get("goal", {})
    ours = goal.get("edgewise")
    for rate in ("constant", "cosine"):
        if rate not in goal:
            continue
        theirs = goal[rate]
        lines.append([
            f"to 99 %, s (PyTorch: {rate} rate)",
            f"{theirs:.1f}" if theirs else "not reached", f"{ours:.1f}" if ours else "not reached",
            f"{theirs / ours:.1f}" if theirs and ours else "", "",
        ])  # fmt: skip
    return "\n".join(out + table.rows_of(head, "lrrrr", lines))


def main():
    p = argparse.ArgumentParser(prog="bench/peers/run epoch", description=__doc__.splitlines()[0])
    p.add_argument("--quick", action="store_true", help="one round of a tenth of an epoch, no goal")
    o = p.parse_args(sys.argv[2:])
    rounds, samples = (1, 6000) if o.quick else (3, 0)
    path, machine = stored(), programs.machine()
    progress = measure.Progress(rounds * (len(SETTINGS) + len(WORKERS)))
    times = [one_round(path, samples, progress) for _ in range(rounds)]
    workers, ours = best(times, "edgewise")
    torch_workers, theirs = best(times, "pytorch")
    result = {"rounds": times, "workers": workers, "torch_workers": torch_workers,
              "epoch_s": statistics.median(ours), "torch_s": statistics.median(theirs),
              "ratios": [b / a for a, b in zip(ours, theirs)]}  # fmt: skip
    if not o.quick:
        progress.show("time to 99 %")
        setting = next(s for s in SETTINGS if s[0] == workers)
        result["goal"] = {"edgewise": until_goal(edgewise(path, setting, EPOCHS, 0))}
        for rate, epochs in (("constant", MOST_EPOCHS), ("cosine", EPOCHS)):
            last = torch(path, torch_workers, 0, GOAL, rate, epochs)["epochs"][-1]
            result["goal"][rate] = last["at_s"] if last["accuracy"] >= GOAL else None
    progress.clear()
    programs.OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine, "result": result}, indent=1) + "\n"
    (programs.OUT / "epoch.json").write_text(text, encoding="utf-8")
    print(markdown(machine, result))


if __name__ == "__main__":
    try:
        main()
    except measure.Failure as e:
        sys.exit(f"peers: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
