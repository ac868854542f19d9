# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks on small machines: Edgewise's engines from Python.

    import edgewise

    with edgewise.open("resnet18.onnx", mean="imagenet") as net:
        for name, probability in net.classify("cat.jpg"):
            print(f"{probability:6.1%} {name}")
        print(net.bench(runs=50))

It needs the shared library alone (by ctypes).  Arrays are numpy's where numpy is installed, else
flat ``array.array``; ``train``, ``quantize`` and ``results`` run the program.  Failures are ``edgewise.Error`` with the library's own message.
"""

from __future__ import annotations

import array
import ctypes as c
import math
import numbers
import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from ._library import CompileOpts, EngineInfo, Error, ModelOpts, Pixels, PortStruct, StepTime, check, file_name, lib, string, text, whole
from ._program import call, quantize, results, train

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

__all__ = [
    "Error", "Network", "Port", "Step", "Times", "open", "models", "version",
    "call", "train", "quantize", "results",
    "IMAGENET_MEAN", "IMAGENET_STD",
]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_CODES = {"float32": "f", "float64": "d", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
          "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q"}


#: Orders of a picture's channels in memory, and their number; as enum ew_pixel_format.
_FORMATS = {"rgb": (0, 3), "bgr": (1, 3), "rgba": (2, 4), "bgra": (3, 4), "grey": (4, 1)}

#: A PNG or JPEG file, or pixels: uint8 of [H, W, C] or, grey, [H, W].
Image = Any


def _pixels(image: Any) -> memoryview:
    """The pixels of an array; PIL images have no buffer, but an __array_interface__ with bytes and shape."""
    told = getattr(image, "__array_interface__", {})
    if not isinstance(told.get("data"), bytes):
        return memoryview(image)
    if told["typestr"] != "|u1":
        raise ValueError(f"pixels are uint8, not {told['typestr']}: convert the image to RGB or L")
    return memoryview(told["data"]).cast("B", told["shape"])


@dataclass(frozen=True)
class Port:
    """An input or output: its shape at the current batch size, row-major."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    channels_last: bool


@dataclass(frozen=True)
class Times:
    """Milliseconds of single runs."""

    runs: int
    median_ms: float
    min_ms: float
    mean_ms: float
    p90_ms: float
    p99_ms: float
    images_per_s: float


@dataclass(frozen=True)
class Step:
    """One step of a run: the median of its times, and its arithmetic."""

    name: str
    op: str
    kernel: str
    us: float
    flops: float


def version() -> str:
    """The library's version."""
    return lib.ew_version().decode()


def models() -> List[str]:
    """The names of the zoo."""
    return [lib.ew_model_name(i).decode() for i in range(lib.ew_model_count())]


def _four(values: Union[float, Sequence[float], None], default: float) -> Any:
    if values is None:
        values = (default,)
    elif isinstance(values, numbers.Real):
        values = (float(values),)
    if not 1 <= len(values) <= 4:
        raise ValueError("one number for all channels, or one each")
    return (c.c_double * 4)(*[float(values[min(i, len(values) - 1)]) for i in range(4)])


def _graph(what: str, seed: int) -> c.c_void_p:
    g = c.c_void_p()
    # Trained networks by name, and checkpoints.
    if what.endswith(".ckpt") or ("." not in what and "/" not in what and what not in models()):
        if not hasattr(lib, "ew_network_graph"):
            raise Error("not supported", f"{what}: this library was built without training")
        check(lib.ew_network_graph(file_name(what), seed, c.byref(g)))
        return g
    if os.path.exists(what) or what.endswith(".onnx") or "/" in what:
        check(lib.ew_onnx_load(file_name(what), None, c.byref(g)))
        return g
    opts = ModelOpts(size=c.sizeof(ModelOpts))
    check(lib.ew_model_build(file_name(what), c.byref(opts), c.byref(g)))
    try:
        check(lib.ew_model_init(file_name(what), seed, g))
    except Error:
        lib.ew_graph_free(g)
        raise
    return g


def open(  # noqa: A001 - like gzip.open
    what: Union[str, "os.PathLike[str]"],
    *,
    batch: Union[int, Tuple[int, int]] = 1,
    threads: int = 0,
    mean: Union[str, float, Sequence[float], None] = None,
    std: Union[float, Sequence[float], None] = None,
    resize: int = 0,
    classes: Optional[Sequence[str]] = None,
    precision: Optional[str] = None,
    memory_limit: int = 0,
    seed: int = 1,
) -> "Network":
    """Opens an engine (.ewe), or compiles another network for this machine.

    That is an ONNX file, a checkpoint, a trained network by its name ("lenet5-mnist", as
    ``edgewise models`` lists them) or one of the zoo.

    ``mean`` and ``std`` (of pixels in [0, 1]; ``mean="imagenet"`` sets both), ``resize`` and
    ``classes`` are the preprocessing and the class names; an engine stores them, and then they must
    not be given.
    Networks of the zoo have random weights from ``seed``.  ``batch`` may be a range (1, 8).
    ``memory_limit`` is in bytes, of weights and activations: kernels are taken that meet it.
    """
    path = os.fsdecode(what)
    if path.endswith(".ewe"):
        given = any(x is not None for x in (mean, std, classes, precision))
        if given or resize or memory_limit or batch != 1:
            raise ValueError(f"{path}: is a compiled engine: preprocessing, classes and batches cannot be changed")
        return Network(path, threads)
    first, last = (batch, batch) if isinstance(batch, numbers.Integral) else batch
    opts = CompileOpts(size=c.sizeof(CompileOpts), batch_min=whole("batch", first),
                       batch_max=whole("batch", last), threads=whole("threads", threads, c.c_int),
                       resize=whole("resize", resize), memory_limit=whole("memory_limit", memory_limit))
    if isinstance(mean, str):
        if mean != "imagenet" or std is not None:
            raise ValueError('mean is numbers, or "imagenet" without std')
        mean, std = IMAGENET_MEAN, IMAGENET_STD
    if mean is not None or std is not None:
        opts.mean, opts.std = _four(mean, 0), _four(std, 1)
        if not all(s > 0 for s in opts.std):
            raise ValueError("std is over 0")
    if precision:
        opts.precision = string(precision.encode())
    if classes:
        opts.classes = (c.c_char_p * len(classes))(*[string(name.encode()) for name in classes])
        opts.n_classes = len(classes)
    graph = _graph(path, whole("seed", seed, c.c_uint64))
    handle, engine = tempfile.mkstemp(suffix=".ewe")
    os.close(handle)
    try:
        check(lib.ew_engine_compile(graph, c.byref(opts), os.fsencode(engine)))
        return Network(engine, threads)  # mapped: the name is not needed any more
    finally:
        os.unlink(engine)
        lib.ew_graph_free(graph)


class Network:
    """An engine with a context that runs it.  Use it from one thread at a time; close it, or use ``with``."""

    _engine = _context = c.c_void_p()  # of an object whose __init__ has not run

    def __init__(self, path: str, threads: int = 0) -> None:
        threads = whole("threads", threads, c.c_int)
        self._engine, self._context = c.c_void_p(), c.c_void_p()
        check(lib.ew_engine_load(file_name(path), c.byref(self._engine)))
        try:
            check(lib.ew_context_new(self._engine, threads, c.byref(self._context)))
        except Error:
            self.close()
            raise
        info = EngineInfo(size=c.sizeof(EngineInfo))
        check(lib.ew_engine_info(self._engine, c.byref(info)))
        self.name: str = text(info.name)
        self.precision: str = text(info.precision)
        self.isa: str = text(info.isa)
        self.parameters: int = info.params
        self.macs: int = info.macs
        self.batches: Tuple[int, int] = (info.batch_min, info.batch_max)
        self._batch: int = info.batch_min
        self._n = (info.n_inputs, info.n_outputs)
        #: Names of the classes; empty where the engine has none.
        self.classes: List[str] = [
            text(lib.ew_engine_class(self._engine, i)) for i in range(info.n_classes)
        ]

    # ---- Life ----

    def close(self) -> None:
        """Releases memory and threads; may be called twice."""
        if self._context:
            lib.ew_context_free(self._context)
        if self._engine:
            lib.ew_engine_free(self._engine)
        self._context = self._engine = c.c_void_p()

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """Refuses copies and pickles, which would free the same memory twice."""
        raise TypeError("a network cannot be copied or pickled: open its file again")

    def __repr__(self) -> str:
        return f"<edgewise.Network {self.name}, {self.precision}, batch {self._batch}>"

    def _open(self) -> c.c_void_p:
        if not self._context:
            raise ValueError("the network is closed")
        return self._context

    # ---- Shapes ----

    @property
    def batch(self) -> int:
        """Batch size; may be set within ``batches``."""
        return self._batch

    @batch.setter
    def batch(self, n: int) -> None:
        n = whole("batch", n)
        check(lib.ew_context_set_batch(self._open(), n))
        self._batch = n

    def _ports(self, get: Any, n: int) -> List[Port]:
        ports, p, context = [], PortStruct(), self._open()
        for i in range(n):
            check(get(context, i, c.byref(p)))
            ports.append(Port(text(p.name), text(p.dtype), tuple(p.dims[: p.rank]), bool(p.channels_last)))
        return ports

    @property
    def inputs(self) -> List[Port]:
        return self._ports(lib.ew_context_input_port, self._n[0])

    @property
    def outputs(self) -> List[Port]:
        return self._ports(lib.ew_context_output_port, self._n[1])

    # ---- Runs ----

    def _put(self, i: int, port: Port, value: Any) -> None:
        size = c.c_size_t()
        to = lib.ew_context_input(self._open(), i, c.byref(size))
        if numpy is not None:
            value = numpy.asarray(value)
            kinds = "biufO" if port.dtype.startswith("float") else "biuO"
            if value.dtype.kind not in kinds:
                raise ValueError(f"input {port.name} is {port.dtype}, got {value.dtype}")
            given, value = value, numpy.ascontiguousarray(value, dtype=port.dtype)
            if value.shape != port.shape:
                raise ValueError(f"input {port.name} takes {port.shape}, got {given.shape}")
            if value.dtype.kind in "iu" and value.dtype != given.dtype and (value != given).any():
                raise ValueError(f"input {port.name} is {port.dtype}, which cannot hold all that is given")
            c.memmove(to, value.ctypes.data, size.value)
            return
        code = _CODES[port.dtype]
        told = isinstance(value, (bytes, bytearray)) or (isinstance(value, array.array) and value.typecode == code)
        data = bytes(value if told else array.array(code, list(value)))
        if len(data) != size.value:
            raise ValueError(f"input {port.name} takes {size.value} bytes, got {len(data)}")
        c.memmove(to, data, size.value)

    def _get(self, i: int, port: Port) -> Any:
        size = c.c_size_t()
        data = c.string_at(lib.ew_context_output(self._open(), i, c.byref(size)), size.value)
        if numpy is not None:
            return numpy.frombuffer(data, dtype=port.dtype).reshape(port.shape).copy()
        return array.array(_CODES[port.dtype], data)

    def run(self, *inputs: Any) -> List[Any]:
        """Runs arrays and returns all outputs, in the order of ``outputs``.

        One array for each input, in the order of ``inputs``, or one dictionary of them by name.
        Where the batch may vary (``open(..., batch=(1, 8))``) it becomes the arrays' first dimension.
        """
        self.start(*inputs)
        return self.wait()

    def start(self, *inputs: Any) -> None:
        """The first half of run: on a GPU it returns before the network has run; on the CPU it runs it."""
        ports = self.inputs
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            names = [port.name for port in ports]
            if sorted(inputs[0]) != sorted(names):
                raise ValueError(f"the inputs are {', '.join(names)}, got {', '.join(inputs[0])}")
            inputs = tuple(inputs[0][name] for name in names)
        if len(inputs) != len(ports):
            raise ValueError(f"{self.name} has {len(ports)} inputs, got {len(inputs)}")
        for port, value in zip(ports, inputs if self.batches[1] > self.batches[0] else ()):
            shape = tuple(getattr(value, "shape", ()))
            if shape[:1] != port.shape[:1] and len(shape) == len(port.shape) and shape[1:] == port.shape[1:]:
                self.batch = int(shape[0])
                ports = self.inputs
                break
        for i, (port, value) in enumerate(zip(ports, inputs)):
            self._put(i, port, value)
        check(lib.ew_context_start(self._open()))

    def wait(self) -> List[Any]:
        """The second half: waits for what start began, and returns all outputs."""
        check(lib.ew_context_wait(self._open()))
        return [self._get(i, port) for i, port in enumerate(self.outputs)]

    def _put_image(self, index: int, image: Image, order: str) -> None:
        if isinstance(image, (str, bytes, os.PathLike)):
            check(lib.ew_context_read_image(self._open(), index, file_name(image)))
            return
        view = _pixels(image)
        if view.ndim == 2 or (view.ndim == 3 and view.shape[2] == 1):
            order = "grey"
        if order not in _FORMATS:
            raise ValueError(f"order is one of {', '.join(_FORMATS)}, not {order}")
        code, channels = _FORMATS[order]
        if view.format != "B" or view.ndim not in (2, 3) or (view.ndim == 3 and view.shape[2] != channels):
            raise ValueError(f"pixels are uint8 of [H, W, {channels}] or [H, W], not {view.format} of {view.shape}")
        data = view.tobytes()  # row-major, whatever the strides were
        pixels = Pixels(size=c.sizeof(Pixels), format=code, width=view.shape[1], height=view.shape[0],
                        data=c.cast(c.c_char_p(data), c.c_void_p))
        check(lib.ew_context_put_pixels(self._open(), index, c.byref(pixels)))

    def run_images(self, *images: Image, order: str = "rgb") -> List[Any]:
        """Runs images with the network's preprocessing and returns all outputs.

        An image is a PNG or JPEG file, an image of PIL in RGB or L, or an array of uint8, [H, W, 3] or
        [H, W], as cameras and OpenCV give them; ``order`` is that of an array's channels: rgb, bgr (OpenCV), rgba, bgra.
        There are as many as the batch; where that may vary it becomes their number.
        """
        if len(images) != self._batch and self.batches[1] > self.batches[0]:
            self.batch = len(images)
        if len(images) != self._batch:
            raise ValueError(f"{len(images)} images for a batch of {self._batch}")
        for i, image in enumerate(images):
            self._put_image(i, image, order)
        check(lib.ew_context_run(self._open()))
        return [self._get(i, port) for i, port in enumerate(self.outputs)]

    def classify(self, image: Image, top: int = 5, order: str = "rgb") -> List[Tuple[str, float]]:
        """The top classes of one image (as for ``run_images``), with their softmax probabilities.

        Empty if a score is not a number; a network whose first output is not one row of scores is refused.
        """
        got = self.run_images(image, order=order)[0]
        port = self.outputs[0]
        if sum(n > 1 for n in port.shape) != 1 or not port.dtype.startswith("float"):
            raise ValueError(f"{self.name} is no classifier: its output is {port.dtype} of {port.shape}")
        scores = [float(x) for x in (got if numpy is None else got.ravel())]
        if any(math.isnan(x) for x in scores):
            return []
        probabilities = all(0 <= x <= 1.0001 for x in scores) and abs(sum(scores) - 1) < 1e-3
        most = max(scores)
        parts = scores if probabilities else [math.exp(x - most) for x in scores]
        whole = sum(parts)
        order = sorted(range(len(scores)), key=lambda k: -scores[k])[:top]
        return [(self.classes[k] if k < len(self.classes) else str(k), parts[k] / whole) for k in order]

    # ---- Time ----

    def bench(self, runs: int = 100, warmup: int = 5) -> Times:
        """Times single runs on the current inputs."""
        if runs < 1:
            raise ValueError("at least one run")
        context = self._open()
        for _ in range(warmup):
            check(lib.ew_context_run(context))
        ms = []
        for _ in range(runs):
            start = time.perf_counter_ns()
            check(lib.ew_context_run(context))
            ms.append((time.perf_counter_ns() - start) * 1e-6)
        ms.sort()
        def at(q: float) -> float:
            k = q * (len(ms) - 1)
            low, high = ms[math.floor(k)], ms[math.ceil(k)]
            return low + (high - low) * (k - math.floor(k))
        return Times(runs, at(0.5), ms[0], sum(ms) / runs, at(0.9), at(0.99), 1e3 * self._batch / at(0.5))

    def profile(self, runs: int = 20) -> List[Step]:
        """The time of each step."""
        n, steps = c.c_int(), (StepTime * 4096)()
        check(lib.ew_context_profile(self._open(), whole("runs", runs, c.c_int), steps, len(steps), c.byref(n)))
        return [Step(text(s.name), text(s.op), text(s.kernel), s.us, s.flops)
                for s in steps[: n.value]]
