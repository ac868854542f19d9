# SPDX-License-Identifier: Apache-2.0
"""Edgewise beside ONNX Runtime and PyTorch: the same outputs, and then times."""

# Started by bench/peers/run, which installs and builds.  The networks are in cases.py, the programs
# in programs.py, rounds and ratios in measure.py, the comparison of outputs in check.py.

import argparse
import functools
import json
import os
import sys

import cases
import check
import isas
import measure
import onnx_networks
import programs
import table
from measure import Failure

THREADS = [t for t in (1, 2) if t <= (os.cpu_count() or 1)]

PACES = {
    "infer": measure.Pace(rounds=7, seconds=1.0, fewest=5),
    "int8": measure.Pace(rounds=7, seconds=1.0, fewest=5),
    "train": measure.Pace(rounds=5, seconds=3.0, fewest=3),
    "others": measure.Pace(rounds=7, seconds=1.0, fewest=5),
    "others-train": measure.Pace(rounds=5, seconds=3.0, fewest=3),
    "video": measure.Pace(rounds=5, seconds=1.0, fewest=2),
    "video-int8": measure.Pace(rounds=5, seconds=1.0, fewest=2),
    "video-train": measure.Pace(rounds=3, seconds=2.0, fewest=2),
}
QUICK = measure.Pace(rounds=2, seconds=0.3, fewest=2)


# ---- infer ------------------------------------------------------------------


def infer_case(pace, _isa, case, own, progress):
    row = {"name": case.name, "title": case.title, "threads": {}}
    path = programs.export(case, case.batch)
    try:
        for threads in THREADS:
            runs = {
                "edgewise": programs.edgewise_side(path, [], threads),
                "onnxruntime": programs.ort_side(path, case.shape(own), threads),
            }
            what = f"{case.name}, threads: {threads}"
            rounds = measure.interleave(runs, pace, functools.partial(progress.show, what))
            both = {name: measure.summary(r) for name, r in rounds.items()}
            row["threads"][str(threads)] = {
                **both,
                **measure.compare(both["edgewise"], both["onnxruntime"]),
            }
            progress.step()
    finally:
        path.unlink(missing_ok=True)
    return row


# ---- int8 -------------------------------------------------------------------


def int8_case(pace, _isa, case, own, progress):
    """One file in QDQ form for both, and our float32 beside them."""
    row = {"name": case.name, "title": case.title, "threads": {}}
    row["same"], row["difference"] = check.run_int8(case, own)
    plain = programs.export(case, case.batch)
    quantised = None
    try:
        quantised = programs.quantize(plain, case.shape(own))
        for threads in THREADS:
            runs = {
                "edgewise": programs.edgewise_side(quantised, [], threads),
                "onnxruntime": programs.ort_side(quantised, case.shape(own), threads),
                "float32": programs.edgewise_side(plain, [], threads),
            }
            what = f"{case.name}, threads: {threads}"
            rounds = measure.interleave(runs, pace, functools.partial(progress.show, what))
            three = {name: measure.summary(r) for name, r in rounds.items()}
            row["threads"][str(threads)] = {
                **three,
                **measure.compare(three["edgewise"], three["onnxruntime"]),
                "over_float32": measure.compare(three["edgewise"], three["float32"])["ratio"],
            }
            progress.step()
    finally:
        plain.unlink(missing_ok=True)
        if quantised:
            quantised.unlink(missing_ok=True)
    return row


# ---- train ------------------------------------------------------------------


def train_case(pace, isa, case, own, progress):
    row = {"name": case.name, "title": case.title, "batch": case.batch, "threads": {}}
    info = measure.call_json([programs.EDGEWISE, "info", case.network, *case.options(), "--json"])
    classes = case.classes or programs.zoo()[case.network]["classes"]
    options = ["--train", "--batch", case.batch, *case.options()]
    for threads in THREADS:
        runs = {"edgewise": programs.edgewise_side(case.network, options, threads, isa)}
        for layout in ("nchw", "nhwc"):
            runs[layout] = programs.torch_side(case, case.shape(own), classes, threads, layout, isa)
        what = f"{case.name}, threads: {threads}"
        rounds = measure.interleave(runs, pace, functools.partial(progress.show, what))
        if rounds["nchw"][0]["params"] != info["params"]:
            theirs = rounds["nchw"][0]["params"]
            raise Failure(f"{info['params']} parameters, PyTorch's network has {theirs}")
        three = {name: measure.summary(r) for name, r in rounds.items()}
        better = min(("nchw", "nhwc"), key=lambda layout: three[layout]["median_ms"])
        row["threads"][str(threads)] = {
            **three,
            "layout": better,
            **measure.compare(three["edgewise"], three[better]),
        }
        progress.step()
    return row


# ---- The commands -----------------------------------------------------------


def save(name, head, rows):
    """After every network, so that a run that is cut short has left something."""
    path = programs.OUT / f"{name}.json"
    new = path.with_suffix(".tmp")
    new.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    new.replace(path)
    return path


def run(name, wanted, each, per_case, pace=None):
    """`each` makes a row of a case in `per_case` steps; returns whether all went well."""
    if not wanted:
        print(f"peers: {name}: has none of these networks", file=sys.stderr)
        return True
    head = {"command": name, "machine": programs.machine()}
    if pace:
        head["pace"] = vars(pace)
    networks = programs.zoo()
    progress = measure.Progress(len(wanted) * per_case)
    rows = []
    for i, case in enumerate(wanted):
        progress.done = i * per_case
        progress.show(case.name)
        try:
            rows.append(each(case, networks[case.network]["input"], progress))
        except Failure as e:
            rows.append({"name": case.name, "title": case.title, "failed": str(e)})
        path = save(name, head, rows)
    progress.clear()
    print(table.markdown(name, head["machine"], rows))
    print(f"\n{path.relative_to(programs.ROOT)} has every round.\n", file=sys.stderr)
    return all("failed" not in r and r.get("same", True) for r in rows)


def check_all(o):
    networks = [n for n in programs.zoo() if n not in onnx_networks.INPUTS]  # their batch is fixed
    every = [cases.Case(n) for n in networks] + [c for c in cases.INFER if c.size]
    return run("check", cases.select(every, o.networks), check.run_case, len(check.BATCHES))


def timed(name, all_cases, each):
    def command(o):
        pace = QUICK if o.quick else PACES[name]
        wanted = cases.select(all_cases, o.networks)
        return run(name, wanted, functools.partial(each, pace, o.isa), len(THREADS), pace)

    return command


COMMANDS = {
    "check": check_all,
    "infer": timed("infer", cases.INFER, infer_case),
    "int8": timed("int8", cases.INT8, int8_case),
    "train": timed("train", cases.TRAIN, train_case),
    "others": timed("others", cases.OTHERS, infer_case),
    "others-train": timed("others-train", cases.OTHERS_TRAIN, train_case),
    "video": timed("video", cases.VIDEO, infer_case),
    "video-int8": timed("video-int8", cases.VIDEO_INT8, int8_case),
    "video-train": timed("video-train", cases.VIDEO_TRAIN, train_case),
    "isas": isas.run,
}
ALL = ("check", "infer", "int8", "train")


def main():
    p = argparse.ArgumentParser(prog="bench/peers/run", description=__doc__)
    p.add_argument("what", choices=[*COMMANDS, "all"])
    p.add_argument("--quick", action="store_true", help="two short rounds: to see that it works")
    p.add_argument("--networks", default="", metavar="A,B", help="only these (resnet18@32 is one)")
    p.add_argument("--isa", choices=("avx512", "avx2"), help="isas and training: only this one")
    o = p.parse_args()
    o.networks = {n for n in o.networks.split(",") if n}
    every = cases.INFER + cases.TRAIN + cases.OTHERS + cases.OTHERS_TRAIN + cases.VIDEO
    known = {c.name for c in every} | set(programs.zoo())
    if not o.networks <= known:
        p.error(f"no network called {', '.join(sorted(o.networks - known))}")
    try:
        wanted = ALL if o.what == "all" else (o.what,)
        good = [COMMANDS[c](o) for c in wanted]
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
