# SPDX-License-Identifier: Apache-2.0
"""`run isas`: float32 and int8 inference of all networks with every instruction set of this CPU that
both sides can be held to, on one thread, beside ONNX Runtime; time and memory in two tables."""

import json
import os
import subprocess
import sys

import cases
import measure
import programs
import table
from measure import Failure

PACE = measure.Pace(rounds=2, seconds=0.4, fewest=4)
QUICK = measure.Pace(rounds=1, seconds=0.1, fewest=2)
NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON", "own": "own"}


def known():
    """This CPU's, best first."""
    flags = set(programs.cpu()[1])
    return [isa for isa in ("avx512", "avx2") if f"{isa}f" in flags or isa in flags] or ["own"]


def restricted_library():
    """ONNX Runtime's library for AVX2: it has no switch, see restrict_avx2.py."""
    copy = programs.OUT / "libonnxruntime-avx2.so"
    script = programs.HERE / "restrict_avx2.py"
    newest = max(p.stat().st_mtime for p in (programs.library(), script))
    if not copy.exists() or copy.stat().st_mtime < newest:
        command = [sys.executable, script, programs.library(), copy]
        subprocess.run([str(c) for c in command], check=True)
    return copy


def both(path, shape, isa):
    """The two programs held to `isa`.  VNNI is part of what `avx512` stands for: neither side is held
    below the best of its kind, which on a CPU without AVX-512 may be AVX-VNNI."""
    library = restricted_library() if programs.restricted(isa) else programs.library()
    dims = ",".join(str(d) for d in shape)

    def theirs(warmup, iters):
        command = [programs.OUT / "ort_bench", library, path, dims, 1, "time", warmup, iters]
        return json.loads(measure.call(command))

    return {"edgewise": programs.edgewise_side(path, [], 1, isa), "onnxruntime": theirs}


def measured(pace, path, shape, isa):
    rounds = measure.interleave(both(path, shape, isa), pace, lambda k: None)
    found = {name: measure.summary(r) for name, r in rounds.items()}
    return {**found, **measure.compare(found["edgewise"], found["onnxruntime"])}


def run_case(pace, case, own, isas):
    row = {"title": case.title, "float32": {}, "int8": {}}
    shape = case.shape(own)
    plain, quantised = programs.export(case, case.batch), None
    try:
        for isa in isas:
            row["float32"][isa] = measured(pace, plain, shape, isa)
        if case in cases.INT8:
            quantised = programs.quantize(plain, shape)
            for isa in isas:
                m = row["int8"][isa] = measured(pace, quantised, shape, isa)
                plain_ms = row["float32"][isa]["edgewise"]["best_ms"]
                m["over_float32"] = plain_ms / m["edgewise"]["best_ms"]
    finally:
        plain.unlink(missing_ok=True)
        if quantised:
            quantised.unlink(missing_ok=True)
    return row


# ---- Tables -----------------------------------------------------------------


def cells(kind, m):
    ours, theirs = m["edgewise"], m["onnxruntime"]
    out = [table.number(ours["best_ms"]), f"**{m['ratio_best']:.2f}**", f"{m['ratio']:.2f}"]
    if kind == "int8":
        return [*out, f"{m['over_float32']:.2f}"]
    sizes = [table.megabytes(s["rss_peak_bytes"]) for s in (ours, theirs)]
    return [*out, *sizes, f"{100 * m['memory_ratio']:.0f} %"]


def mean_line(kind, isa, rows):
    found = [r[kind][isa] for r in rows]
    best = [m["ratio_best"] for m in found]
    low = min(rows, key=lambda r: r[kind][isa]["ratio_best"])
    line = (
        f"{NAMES[isa]}: geometric mean by minima {measure.geometric_mean(best):.2f}, "
        f"lowest {min(best):.2f} ({low['title']})"
    )
    if kind == "int8":
        over = measure.geometric_mean(m["over_float32"] for m in found)
        return f"{line}; {over:.2f} over our float32."
    memory = [m["memory_ratio"] for m in found]
    most = max(rows, key=lambda r: r[kind][isa]["memory_ratio"])
    return (
        f"{line}; peak memory {100 * measure.geometric_mean(memory):.0f} % of ONNX Runtime's, "
        f"most {100 * max(memory):.0f} % ({most['title']})."
    )


def markdown(kind, isas, rows):
    rows = [r for r in rows if r.get(kind)]
    extra = ["over float32"] if kind == "int8" else ["MB", "its MB", "share"]
    head = ["network"]
    for isa in isas:
        head += [f"{NAMES[isa]} ms", "by minima", "by medians", *extra]
    lines = [[r["title"], *(c for isa in isas for c in cells(kind, r[kind][isa]))] for r in rows]
    out = table.rows_of(head, "l" + "r" * (len(head) - 1), lines)
    return "\n".join([*out, "", *(mean_line(kind, isa, rows) for isa in isas)])


def run(o):
    pace = QUICK if o.quick else PACE
    isas = [o.isa] if o.isa else known()
    wanted = cases.select(cases.INFER + cases.OTHERS, o.networks)
    networks, rows, failed = programs.zoo(), [], []
    machine = programs.machine()
    progress = measure.Progress(len(wanted))
    for case in wanted:
        progress.show(case.name)
        try:
            rows.append(run_case(pace, case, networks[case.network]["input"], isas))
        except Failure as e:
            failed.append(f"{case.title}: not measured: {e}")
        progress.step()
        path = programs.OUT / "isas.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1), encoding="utf-8")
    progress.clear()
    print(f"{machine['cpu']}, {machine['cpus']} CPUs, one thread; Edgewise {machine['commit']}; ", end="")
    print(f"load {machine['load']:.1f} before, {os.getloadavg()[0]:.1f} after.\n")
    for kind, title in (("float32", "float32"), ("int8", "int8, the same QDQ files")):
        if any(r[kind] for r in rows):
            print(f"### {title}, batch 1\n\n{markdown(kind, isas, rows)}\n")
    print("\n".join(failed))
    return not failed
