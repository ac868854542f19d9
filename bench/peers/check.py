# SPDX-License-Identifier: Apache-2.0
"""Whether ONNX Runtime computes from an exported file what Edgewise computes."""

import numpy as np

import measure
import programs
import randomize
from measure import Failure

TOLERANCE = 1e-4  # largest difference, as a share of the largest output
TOLERANCE_INT8 = 0.1
BATCHES = (1, 3)
GAINS = (1, 2, 3)
SPREAD = 0.01  # how much outputs must differ between images, as a share of the largest


def images(shape):
    """Noise, each image stronger than the one before."""
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    each = np.arange(1, shape[0] + 1, dtype=np.float32)
    return x * each.reshape(-1, *[1] * (len(shape) - 1))


def theirs(path, x):
    """ONNX Runtime's outputs, [N, ...]."""
    source, target = programs.OUT / "check.in", programs.OUT / "check.out"
    try:
        x.tofile(source)
        programs.ort(path, x.shape, 1, "run", source, target)
        return np.fromfile(target, dtype=np.float32).reshape(x.shape[0], -1)
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)


def ours(path, x):
    """Edgewise's."""
    source, target = programs.OUT / "check.in.npy", programs.OUT / "check.out.npy"
    try:
        np.save(source, x)
        measure.call([programs.EDGEWISE, "run", path, "--input", source, "--output", target])
        return np.load(target).reshape(x.shape[0], -1)
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)


def give_values(path, shape):
    """Values for the file's biases and batch norms under which its outputs depend on its inputs.
    Where a network damps its inputs, larger scales help."""
    x = images((max(BATCHES), *shape))
    for gain in GAINS:
        if not randomize.randomize(path, gain):
            raise Failure("the file has no bias and no batch norm")
        y = theirs(path, x)
        if np.ptp(y, axis=0).max() >= SPREAD * np.abs(y).max() > 0:  # false for NaN
            return gain
    raise Failure("the outputs hardly depend on the inputs: equal ones would show nothing")


def difference(path, shape):
    x = images(shape)
    a, b = ours(path, x), theirs(path, x)
    if a.shape != b.shape:
        raise Failure(f"{a.size} outputs, ONNX Runtime has {b.size}")
    return float(np.abs(a.astype(np.float64) - b).max() / np.abs(b).max())


def run_int8(case, own):
    """The largest difference between both on one file in QDQ form.  A number that lies between two
    integers may be rounded either way, and what follows sees that: some steps of the output."""
    path, quantised = programs.export(case, 0), None
    try:
        shape = case.shape(own)
        give_values(path, shape[1:])
        quantised = programs.quantize(path, shape)
        d = difference(quantised, (1, *shape[1:]))
        return d <= TOLERANCE_INT8, d  # false for NaN
    finally:
        path.unlink(missing_ok=True)
        if quantised:
            quantised.unlink(missing_ok=True)


def run_case(case, own, progress):
    row = {"name": case.name, "title": case.title, "tolerance": TOLERANCE, "difference": {}}
    path = programs.export(case, 0)
    try:
        shape = case.shape(own)[1:]
        row["gain"] = give_values(path, shape)
        for batch in BATCHES:
            progress.show(f"{case.name}, batch {batch}")
            row["difference"][str(batch)] = difference(path, (batch, *shape))
            progress.step()
    finally:
        path.unlink(missing_ok=True)
    row["same"] = all(d <= TOLERANCE for d in row["difference"].values())  # false for NaN
    return row
