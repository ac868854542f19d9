# SPDX-License-Identifier: Apache-2.0
"""ONNX files of float32 networks with random weights, written field by field (onnx.proto3): no
package is needed."""

import struct

import numpy

FLOAT, INT64 = 1, 7  # TensorProto.DataType
OPSET = 17
IR = 8


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, payload):
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def tensor(name, array):
    kind = INT64 if array.dtype == numpy.int64 else FLOAT
    dims = b"".join(number(1, d) for d in array.shape)
    return dims + number(2, kind) + data(8, name) + data(9, array.tobytes())


def attribute(name, value):
    head = data(1, name)
    if isinstance(value, str):
        return head + data(4, value) + number(20, 3)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return head + number(3, value) + number(20, 2)
    return head + b"".join(number(8, v) for v in value) + number(20, 7)


def value_info(name, shape):
    dims = b"".join(data(1, number(1, d)) for d in shape)
    return data(1, name) + data(2, data(1, number(1, FLOAT) + data(2, dims)))


class Graph:
    """Values are names; `node` returns that of its first output."""

    def __init__(self, seed=1):
        self.parts, self.count = [], 0
        self.rng = numpy.random.default_rng(seed)

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def input(self, shape):
        self.parts.append(data(11, value_info("input", shape)))
        return "input"

    def const(self, array):
        name = self.fresh()
        array = numpy.asarray(array, order="C")  # keeps scalars
        self.parts.append(data(5, tensor(name, array)))
        return name

    def ints(self, *values):
        return self.const(numpy.array(values, numpy.int64))

    def weight(self, *shape, fan=None):
        """Normal, scaled so that sums over `fan` terms keep their size."""
        scale = (2.0 / (fan or numpy.prod(shape[1:]))) ** 0.5
        return self.const((self.rng.standard_normal(shape) * scale).astype(numpy.float32))

    def full(self, value, *shape):
        return self.const(numpy.full(shape, value, numpy.float32))

    def node(self, kind, *inputs, outputs=1, **attrs):
        names = [self.fresh() for _ in range(outputs)]
        body = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in names)
        body += data(3, f"{kind}_{self.count}") + data(4, kind)
        body += b"".join(data(5, attribute(k, v)) for k, v in attrs.items())
        self.parts.append(data(1, body))
        return names[0] if outputs == 1 else names

    def save(self, path, output, shape):
        self.parts.append(data(12, value_info(output, shape)))
        graph = data(2, "made") + b"".join(self.parts)
        opset = data(8, data(1, "") + number(2, OPSET))
        with open(path, "wb") as f:
            f.write(number(1, IR) + opset + data(7, graph))
