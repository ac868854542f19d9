# SPDX-License-Identifier: Apache-2.0
"""Every ONNX file of a folder in both programs, on the same inputs.

ONNX Runtime's side (ort_file.cjs) makes the inputs and runs the file as it stands, without graph
optimisations; its results stay in build/peers/files and are used again.  Files count as agreeing,
differing, refused by us, or refused by ONNX Runtime; what is refused is counted by its reason.
"""

import argparse
import collections
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np
import programs

TIMEOUT_S = 120

# Largest difference as a share of the largest output.  Where halves or 8-bit numbers are on the way,
# either program may keep more digits between two nodes than the other.
LEAST = {"float64": 1e-6, "float32": 1e-6, "float16": 6.1e-5}  # halves below it lose their digits
TOLERANCE = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2}
TOLERANCE_HALF = 1e-2
TOLERANCE_INT8 = 0.1  # as check.py has it: a rounding that tips over is seen by all nodes behind it


# Files of ONNX Runtime's repository on which the specification leaves the result open, by the beginning of
# their names.  Of the last one's images of 720x720 ONNX Runtime is 0.0014 of the largest away from the plain
# kernels' result (run --reference, sums in double), and we are 0.0004.
OPEN = {
    "ort_github_issue_19590.onnx": "a negative float32 as uint8",
    "webgpu_pow_cast_test.onnx": "a NaN as int64",
    "dropout.onnx": "the mask of Dropout before opset 12, in inference",
    "fns-candy": "digits lost in instance norms of large images",
}


@dataclass
class Verdict:
    kind: str  # agree, differ, open, refused by us, refused by ONNX Runtime, crash
    why: str = ""


def results_of(path):
    """The folder with ONNX Runtime's inputs and outputs of this file."""
    digest = hashlib.sha256(path.read_bytes() + str(path).encode()).hexdigest()[:24]
    return programs.OUT / "files" / digest


def run_theirs(path):
    """What ort_file.cjs says: names, or the error."""
    folder = results_of(path)
    done = folder / "run.json"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["node", programs.HERE / "ort_file.cjs", programs.OUT / "node_modules", path, folder]
        try:
            p = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
            why = f"ended by signal {-p.returncode}" if p.returncode else "no result"
        except subprocess.TimeoutExpired:
            why = f"no answer in {TIMEOUT_S} s"
        if not done.exists():
            done.write_text(json.dumps({"error": why}), encoding="utf-8")
    return json.loads(done.read_text(encoding="utf-8"))


def run_ours(path, names):
    """Runs Edgewise on the inputs of ONNX Runtime's run; Failure says why it refuses."""
    folder = results_of(path)
    ours = folder / "ours.npy"
    for old in folder.glob("ours*.npy"):
        old.unlink()
    # A name with '/' or ',' cannot be given on the command line; the position can.
    words = [f"{folder}/in_{i}.npy" if set(n) & set("/,=") else f"{n}={folder}/in_{i}.npy"
             for i, n in enumerate(names)] or ["--random"]  # fmt: skip
    command = [programs.EDGEWISE, "run", path, *words, "-o", ours, "--top", 0, "--threads", 1]
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace",
                       timeout=TIMEOUT_S, check=False)  # fmt: skip
    if p.returncode < 0:
        return Verdict("crash", f"signal {-p.returncode}")
    if p.returncode:
        lines = [s for s in p.stderr.splitlines() if s.startswith("edgewise: ")]
        return Verdict("refused by us", lines[-1] if lines else "without a word")
    return None


def least_tolerance(path):
    """What the file's own operators make of the tolerance."""
    text = path.read_bytes()
    if b"QuantizeLinear" in text or b"QLinear" in text or b"MatMulInteger" in text:
        return TOLERANCE_INT8
    return TOLERANCE_HALF if b"Cast" in text or b"float16" in text.lower() else 0


def difference(a, b, least):
    """"" where a is b within the tolerance, else how far they are apart."""
    if a.shape != b.shape:
        return f"shape {a.shape}, ONNX Runtime's {b.shape}"
    if a.dtype != b.dtype:
        return f"type {a.dtype}, ONNX Runtime's {b.dtype}"
    if a.size == 0 or np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return ""
    if a.dtype.kind != "f":
        worst = np.abs(a.astype(np.int64) - b.astype(np.int64)).max()
        return "" if a.dtype.itemsize == 1 and a.dtype.kind in "iu" and worst <= 1 else f"by {worst}"
    tolerance, floor = max(TOLERANCE[a.dtype.name], least), LEAST[a.dtype.name]
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "not finite at the same places"
    ok = np.isfinite(b)
    if not np.array_equal(a[~ok], b[~ok], equal_nan=True):
        return "other infinities"
    worst = np.abs(a[ok] - b[ok]).max() / max(np.abs(b[ok]).max(), floor) if ok.any() else 0
    return "" if worst <= tolerance else f"by {worst:.2g} of the largest"


def judge(path):
    there = run_theirs(path)
    if "error" in there:
        return Verdict("refused by ONNX Runtime", there["error"])
    try:
        refused = run_ours(path, there["inputs"])
    except subprocess.TimeoutExpired:
        return Verdict("crash", f"no answer in {TIMEOUT_S} s")
    if refused:
        return refused
    folder = results_of(path)
    for i, name in enumerate(there["outputs"]):
        ours = folder / ("ours.npy" if i == 0 else f"ours_{i}.npy")
        why = difference(np.load(ours), np.load(folder / f"out_{i}.npy"), least_tolerance(path))
        if why:
            known = next((OPEN[n] for n in OPEN if path.name.startswith(n)), "")
            return Verdict("open" if known else "differ", f"output {name}: {why} {known}")
    return Verdict("agree")


def reason(text, path):
    """The message without what is this file's own, so that it can be counted."""
    text = text.replace(str(path), "").replace("edgewise: : ", "")
    found = re.search(r"operator (\S+) \((\S+), opset \d+\) of node", text)
    if found:
        return f"operator {found[1]} ({found[2]})"
    text = re.sub(r"^node .*? \((\w+)\): ", r"\1: ", text)
    text = re.sub(r"(Load model from|Name:)'?\S*", "", text)
    return re.sub(r"\d+", "N", text)[:110]


def print_reasons(verdicts, kind):
    counts = collections.Counter(reason(v.why, p) for p, v in verdicts if v.kind == kind)
    if counts:
        print(f"\n### {kind}, by reason\n")
    for why, n in counts.most_common():
        print(f"{n:4} {why}")


def main():
    p = argparse.ArgumentParser(prog="bench/peers/run files", description=__doc__)
    p.add_argument("what", choices=["files"])
    p.add_argument("folder", type=Path)
    p.add_argument("--only", default="", metavar="TEXT", help="only paths that hold it")
    p.add_argument("--fresh", action="store_true", help="run ONNX Runtime again")
    o = p.parse_args()
    if o.fresh:
        shutil.rmtree(programs.OUT / "files", ignore_errors=True)
    paths = sorted(q for q in o.folder.resolve().rglob("*.onnx") if o.only in str(q))
    if not paths:
        sys.exit(f"files: {o.folder} has no .onnx file")
    progress = measure.Progress(len(paths))
    verdicts = []
    for path in paths:
        progress.show(path.name)
        verdicts.append((path, judge(path)))
        progress.step()
    progress.clear()
    report = {str(q.relative_to(o.folder.resolve())): [v.kind, v.why] for q, v in verdicts}
    (programs.OUT / "files.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for kind in ("refused by ONNX Runtime", "refused by us"):
        print_reasons(verdicts, kind)
    shown = [(q, v) for q, v in verdicts if v.kind in ("open", "differ", "crash")]
    if shown:
        print("\n### differ, crash, or open in the specification\n")
    for path, v in shown:
        print(f"{v.kind}: {path.relative_to(o.folder.resolve())}: {v.why}")
    counts = collections.Counter(v.kind for _, v in verdicts)
    print("\n" + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) + f"; {len(paths)} files")
    sys.exit(1 if any(v.kind != "open" for _, v in shown) else 0)


if __name__ == "__main__":
    main()
