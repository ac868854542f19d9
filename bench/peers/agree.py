# SPDX-License-Identifier: Apache-2.0
"""Whether ONNX Runtime picks the same class as Edgewise from the same QDQ file, on real images.

LeNet-5 is trained on MNIST here and a small network on CIFAR-10; files of pretrained networks and
photographs come from the folder that EW_DATA names, and are left out where there is none.  Each is
quantised by `edgewise quantize` with its defaults.  Both programs get the same tensors.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import check
import measure
import numpy as np
import programs
import table

DATA = Path(os.environ.get("EW_DATA", "EW_DATA (not set)"))
LIKE = 0.99  # of the images that both must put into the same class
BATCH = 50
IMAGES = {False: 2000, True: 200}  # by --quick


@dataclass(frozen=True)
class Trained:
    """A network of the zoo, trained on a known data set."""

    network: str
    data: str
    epochs: int
    samples: int = 0  # of each epoch; 0: all

    @property
    def name(self):
        return f"{self.network}, {self.data}"


@dataclass(frozen=True)
class Pretrained:
    """A file, and how pixels in [0, 1] become its input."""

    file: str
    mean: tuple
    std: tuple

    @property
    def name(self):
        return self.file


CASES = [
    Trained("lenet5", "mnist", 2),
    Trained("mobilenet_v2_cifar", "cifar10", 2, samples=8000),
    Pretrained("squeezenet1_1_imagenet.onnx", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Pretrained("mobilenet_v2_imagenet.onnx", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
]


# ---- Images -----------------------------------------------------------------


def mnist(folder):
    raw = np.fromfile(Path(folder) / "t10k-images-idx3-ubyte", dtype=np.uint8)[16:]
    return raw.reshape(-1, 1, 28, 28)


def cifar10(folder):
    raw = np.fromfile(Path(folder) / "test_batch.bin", dtype=np.uint8)
    return raw.reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32)


def photographs(folder, size):
    from PIL import Image

    out = []
    for path in sorted(Path(folder).glob("*.jpg")):
        image = Image.open(path).convert("RGB")
        left, top = (image.width - size) // 2, (image.height - size) // 2
        pixels = np.asarray(image.crop((left, top, left + size, top + size)))
        out.append(pixels.transpose(2, 0, 1))
    return np.stack(out)


def normalised(pixels, mean, std):
    shape = (1, -1, 1, 1)
    c = pixels.shape[1]
    mean, std = (np.array(v[:c], dtype=np.float32).reshape(shape) for v in (mean, std))
    return ((pixels.astype(np.float32) / 255 - mean) / std).astype(np.float32)


# ---- Files ------------------------------------------------------------------


def quantize(source, calib, options, out):
    text = measure.call([programs.EDGEWISE, "quantize", source, "--calib", calib, "--time=false",
                         *options, "-o", out])  # fmt: skip
    words = next(line.split() for line in text.splitlines() if line.startswith("images:"))
    given = {k: v.strip(",") for k, v in zip(words[1::2], words[2::2])}
    return tuple(tuple(float(v) for v in given[k].split(",")) for k in ("--mean", "--std"))


def prepare(case, quick, out):
    """Writes the quantised file; returns inputs for it."""
    if isinstance(case, Pretrained):
        photos = DATA / "imagenet-200"
        options = ["--mean", ",".join(map(str, case.mean)), "--std", ",".join(map(str, case.std))]
        quantize(DATA / case.file, f"{photos}:100", options, out)
        return normalised(photographs(photos, 224), case.mean, case.std)
    where = measure.call_json([programs.EDGEWISE, "data", "get", case.data, "--json"])["path"]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        measure.call([programs.EDGEWISE, "train", case.network, "--data", case.data, "--epochs",
                      case.epochs, "--samples", case.samples, "-o", run])  # fmt: skip
        prep = quantize(run / "best.ckpt", f"{case.data}:500", [], out)
    pixels = {"mnist": mnist, "cifar10": cifar10}[case.data](where)
    return normalised(pixels[: IMAGES[quick]], *prep)


# ---- The comparison ---------------------------------------------------------


def in_batches(run, path, x):
    """Scores; files whose batch is fixed take one image at a time."""
    try:
        return np.concatenate([run(path, x[i : i + BATCH]) for i in range(0, len(x), BATCH)])
    except measure.Failure:
        return np.concatenate([run(path, x[i : i + 1]) for i in range(len(x))])


def compare(case, quick):
    path = programs.OUT / "agree.int8.onnx"
    try:
        x = prepare(case, quick, path)
        a, b = (in_batches(run, path, x) for run in (check.ours, check.theirs))
    finally:
        path.unlink(missing_ok=True)
    like = float((a.argmax(axis=1) == b.argmax(axis=1)).mean())
    return {
        "name": case.name,
        "images": len(x),
        "like": like,
        "equal": float((a == b).all(axis=1).mean()),
        "difference": float(np.abs(a - b).max() / np.abs(b).max()),
        "same": like >= LIKE,
    }


def markdown(rows):
    lines = [
        [r["name"], f"{r['images']:,}", f"{100 * r['like']:.2f} %", f"{100 * r['equal']:.2f} %",
         f"{r['difference']:.1e}"]
        for r in rows
    ]  # fmt: skip
    head = ["network", "images", "same class", "all scores equal", "largest difference"]
    return "\n".join(table.rows_of(head, "lrrrr", lines))


def main():
    p = argparse.ArgumentParser(prog="bench/peers/run agree", description=__doc__)
    p.add_argument("what", choices=["agree"])
    p.add_argument("--quick", action="store_true", help="200 images of each")
    p.add_argument("--networks", default="", metavar="A,B", help="only those that begin so")
    o = p.parse_args()
    wanted = tuple(n for n in o.networks.split(",") if n) or ("",)
    rows, failed = [], []
    for case in (c for c in CASES if c.name.startswith(wanted)):
        if isinstance(case, Pretrained) and not (DATA / case.file).exists():
            print(f"agree: {case.file} left out: {DATA} does not have it", file=sys.stderr)
            continue
        try:
            rows.append(compare(case, o.quick))
        except measure.Failure as e:
            failed.append(f"{case.name}: not compared: {e}")
    print("### Classes of quantised networks, Edgewise and ONNX Runtime on the same QDQ files\n")
    print(markdown(rows))
    print("".join(f"\n{line}" for line in failed))
    (programs.OUT / "agree.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if not failed and all(r["same"] for r in rows) else 1)


if __name__ == "__main__":
    main()
