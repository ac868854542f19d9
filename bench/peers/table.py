# SPDX-License-Identifier: Apache-2.0
"""Markdown tables of what was found."""

import measure

LAYOUTS = {"nchw": "NCHW", "nhwc": "channels-last"}


def rows_of(head, align, lines):
    out = ["| " + " | ".join(head) + " |"]
    out.append("|" + "|".join("---" if a == "l" else "---:" for a in align) + "|")
    return out + ["| " + " | ".join(line) + " |" for line in lines]


def number(v):
    """Three digits that count."""
    if v >= 99.5:
        return f"{v:,.0f}"
    return f"{v:.1f}" if v >= 9.95 else f"{v:.2f}" if v >= 0.995 else f"{v:.3f}"


def megabytes(b):
    return number(b / 1e6)


def span(r):
    return f"{r['ratio_low']:.2f} to {r['ratio_high']:.2f}"


def check(rows):
    lines = [
        [r["title"], *(f"{r['difference'][b]:.1e}" for b in ("1", "3")), "yes" if r["same"] else "**no**"]
        for r in rows
    ]
    out = rows_of(["network", "batch 1", "batch 3", "same"], "lrrr", lines)
    same = sum(r["same"] for r in rows)
    return out + ["", f"{same} of {len(rows)} the same: largest difference over largest output <= 1e-4."]


def means(rows):
    """The last lines: geometric means of the ratios by number of threads."""
    out = []
    for t in rows[0]["threads"]:
        ratios = [r["threads"][t] for r in rows]
        mean = measure.geometric_mean(r["ratio"] for r in ratios)
        best = measure.geometric_mean(r["ratio_best"] for r in ratios)
        low = min(rows, key=lambda r: r["threads"][t]["ratio"])
        out.append(
            f"{t} thread{'s' if t != '1' else ''}: geometric mean {mean:.2f} "
            f"(by minima {best:.2f}), lowest {low['threads'][t]['ratio']:.2f} ({low['title']})."
        )
    return out


def infer(rows):
    head = ["network", "threads", "Edgewise ms", "ONNX Runtime ms", "ratio", "rounds", "by minima",
            "Edgewise MB", "ONNX Runtime MB"]  # fmt: skip
    lines = []
    for r in rows:
        for t, m in r["threads"].items():
            ours, theirs = m["edgewise"], m["onnxruntime"]
            lines.append([
                r["title"], t, number(ours["median_ms"]), number(theirs["median_ms"]),
                f"**{m['ratio']:.2f}**", span(m), f"{m['ratio_best']:.2f}",
                megabytes(ours["rss_peak_bytes"]), megabytes(theirs["rss_peak_bytes"]),
            ])  # fmt: skip
    return rows_of(head, "lrrrrrrrr", lines)


def int8(rows):
    head = ["network", "threads", "Edgewise ms", "ONNX Runtime ms", "ratio", "rounds", "by minima",
            "over float32", "difference"]  # fmt: skip
    lines = []
    for r in rows:
        for t, m in r["threads"].items():
            lines.append([
                r["title"], t, number(m["edgewise"]["median_ms"]),
                number(m["onnxruntime"]["median_ms"]), f"**{m['ratio']:.2f}**", span(m),
                f"{m['ratio_best']:.2f}", f"{m['over_float32']:.2f}", f"{r['difference']:.1e}",
            ])  # fmt: skip
    return rows_of(head, "lrrrrrrrr", lines)


def train(rows):
    head = ["network", "threads", "Edgewise images/s", "PyTorch images/s", "its layout", "ratio", "rounds",
            "by minima", "Edgewise MB", "PyTorch MB"]  # fmt: skip
    lines = []
    for r in rows:
        for t, m in r["threads"].items():
            ours, theirs = m["edgewise"], m[m["layout"]]
            speed = [1e3 * r["batch"] / s["median_ms"] for s in (ours, theirs)]
            lines.append([
                r["title"], t, *(number(s) for s in speed), LAYOUTS[m["layout"]],
                f"**{m['ratio']:.2f}**", span(m), f"{m['ratio_best']:.2f}",
                megabytes(ours["rss_peak_bytes"]), megabytes(theirs["rss_peak_bytes"]),
            ])  # fmt: skip
    return rows_of(head, "lrrrlrrrrr", lines)


TITLES = {
    "check": "Outputs of exported networks, Edgewise against ONNX Runtime",
    "infer": "Inference at batch 1, Edgewise against ONNX Runtime",
    "int8": "Quantised networks at batch 1, Edgewise against ONNX Runtime on the same QDQ files",
    "train": "Training steps, Edgewise against PyTorch",
    "others": "Inference at batch 1 of networks that nothing was tuned on, against ONNX Runtime",
    "others-train": "Training steps of networks that nothing was tuned on, against PyTorch",
    "video": "Inference of one clip, Edgewise against ONNX Runtime",
    "video-int8": "Quantised networks on one clip, against ONNX Runtime on the same QDQ files",
    "video-train": "Training steps on four clips, Edgewise against PyTorch",
}

# The table that a command prints.
KINDS = {
    "others": "infer", "others-train": "train", "video": "infer", "video-int8": "int8",
    "video-train": "train",
}  # fmt: skip


def peer(name, done):
    """Which version the rows are about."""
    if not done or name == "check":
        return ""
    first = next(iter(done[0]["threads"].values()))
    if KINDS.get(name, name) in ("infer", "int8"):
        return f", ONNX Runtime {first['onnxruntime']['rounds'][0]['version']}"
    r = first["nchw"]["rounds"][0]
    return f", PyTorch {r['version']} ({r['capability']}, {' '.join(r['blas'])})"


def markdown(name, machine, rows):
    done = [r for r in rows if "failed" not in r]
    out = [f"### {TITLES[name]}", ""]
    programs = f"Edgewise {machine['commit']}{peer(name, done)}"
    out.append(f"{machine['cpu']}, {machine['cpus']} CPUs; {programs}.")
    if name != "check" and machine["load"] > 0.2 * machine["cpus"]:
        out.append(
            f"The load was {machine['load']:.1f} before the start: other work was running, "
            "so take these numbers for noise."
        )
    out.append("")
    if done:
        forms = {"check": check, "infer": infer, "int8": int8, "train": train}
        out += forms[KINDS.get(name, name)](done)
        if name != "check":
            out += ["", *means(done)]
    out += [f"\n{r['title']}: not measured: {r['failed']}" for r in rows if "failed" in r]
    return "\n".join(out)
