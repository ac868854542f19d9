# SPDX-License-Identifier: Apache-2.0
"""Gives the per-channel numbers of an ONNX file random values, in place.

A fresh network has batch norms that do nothing (mean 0, variance 1) and biases of 0: two programs
could disagree on all of them and still give the same output.  Only the little of protobuf's wire
format that this takes is read here, since Debian has no Python package for ONNX in all releases.
"""

import mmap

import numpy as np

# Field numbers of onnx.proto.
MODEL_GRAPH, GRAPH_INITIALIZER = 7, 5
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW = 1, 2, 8, 9
FLOAT32 = 1
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data, at, end):
    """Of a message in data[at:end]: (number, value), where bytes are a (start, end) pair."""
    while at < end:
        key, at = varint(data, at)
        wire = key & 7
        if wire == VARINT:
            value, at = varint(data, at)
        elif wire == BYTES:
            size, at = varint(data, at)
            value, at = (at, at + size), at + size
        elif wire in (FIXED32, FIXED64):
            value, at = None, at + (4 if wire == FIXED32 else 8)
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        yield key >> 3, value


def dims_of(data, value):
    """Dimensions are packed or not, as the writer likes."""
    if not isinstance(value, tuple):
        return [value]
    dims, at = [], value[0]
    while at < value[1]:
        d, at = varint(data, at)
        dims.append(d)
    return dims


def tensors(data):
    """Of each float32 initializer: its name, its dimensions and where its bytes are."""
    for number, graph in fields(data, 0, len(data)):
        if number != MODEL_GRAPH:
            continue
        for inner, tensor in fields(data, *graph):
            if inner != GRAPH_INITIALIZER:
                continue
            t = {TENSOR_DIMS: []}
            for k, value in fields(data, *tensor):
                if k == TENSOR_DIMS:
                    t[k] += dims_of(data, value)
                else:
                    t[k] = value
            if t[TENSOR_TYPE] == FLOAT32 and TENSOR_RAW in t:
                start, end = t[TENSOR_NAME]
                yield data[start:end].decode(), t[TENSOR_DIMS], t[TENSOR_RAW]


def vectors(data):
    """Those with one dimension: name and bytes."""
    return ((name, raw) for name, dims, raw in tensors(data) if len(dims) == 1)


def randomize(path, gain, seed=1):
    """Biases and means get small values of either sign, variances values near 1, and scales values
    near `gain`; returns how many vectors there were."""
    rng = np.random.default_rng(seed)
    count = 0
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as data:
        for name, (start, end) in list(vectors(data)):
            n = (end - start) // 4
            if name.endswith((".bias", ".running_mean")):
                v = rng.uniform(-0.1, 0.1, n)
            else:
                v = rng.uniform(0.5, 1.5, n) * (gain if name.endswith(".weight") else 1)
            data[start:end] = v.astype("<f4").tobytes()
            count += 1
    return count
