# SPDX-License-Identifier: Apache-2.0
"""Networks that Edgewise's zoo lacks, as ONNX files with random weights: a MobileNet V1, an
EfficientNet-B0, a U-Net, a small vision transformer, a RegNetY, an MNASNet, a GoogLeNet and a wide
ResNet, as their papers have them, in inference form (batch norms folded into the convolutions)."""

import numpy
from onnx_write import Graph


def conv(g, x, cin, cout, kernel=3, stride=1, groups=1, act=None):
    pad = kernel // 2
    w = g.weight(cout, cin // groups, kernel, kernel)
    x = g.node(
        "Conv", x, w, g.full(0.01, cout), kernel_shape=[kernel, kernel],
        strides=[stride, stride], pads=[pad] * 4, group=groups,
    )  # fmt: skip
    if act == "silu":
        return g.node("Mul", x, g.node("Sigmoid", x))
    return g.node(act, x) if act else x


def dense(g, x, cin, cout):
    return g.node("Gemm", x, g.weight(cout, cin), g.full(0.01, cout), transB=1)


def classifier(g, x, cin, classes=1000):
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    return dense(g, x, cin, classes)


def mobilenet_v1(g):
    """Howard et al., 2017: 1.0, 224."""
    x = conv(g, g.input([1, 3, 224, 224]), 3, 32, stride=2, act="Relu")
    cin = 32
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for cout, stride in blocks + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = conv(g, x, cin, cin, stride=stride, groups=cin, act="Relu")
        x = conv(g, x, cin, cout, 1, act="Relu")
        cin = cout
    return classifier(g, x, cin), [1, 1000]


def squeeze_excite(g, x, channels, squeezed):
    s = g.node("GlobalAveragePool", x)
    s = conv(g, s, channels, squeezed, 1, act="silu")
    return g.node("Mul", x, conv(g, s, squeezed, channels, 1, act="Sigmoid"))


def efficientnet_b0(g):
    """Tan and Le, 2019."""
    x = conv(g, g.input([1, 3, 224, 224]), 3, 32, stride=2, act="silu")
    cin = 32
    stages = [  # expansion, channels, blocks, stride, kernel
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ]  # fmt: skip
    for expand, cout, blocks, first, kernel in stages:
        for i in range(blocks):
            stride, mid = (1 if i else first), cin * expand
            y = conv(g, x, cin, mid, 1, act="silu") if expand > 1 else x
            y = conv(g, y, mid, mid, kernel, stride, groups=mid, act="silu")
            y = squeeze_excite(g, y, mid, max(1, cin // 4))
            y = conv(g, y, mid, cout, 1)
            x = g.node("Add", x, y) if stride == 1 and cin == cout else y
            cin = cout
    return classifier(g, conv(g, x, cin, 1280, 1, act="silu"), 1280), [1, 1000]


def pool(g, x, kernel, stride):
    pad = [kernel // 2] * 4
    return g.node("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pad)


def regnet_y_400mf(g):
    """Radosavovic et al., 2020: groups of 8 channels, squeeze-and-excite in each block."""
    x, cin = conv(g, g.input([1, 3, 224, 224]), 3, 32, stride=2, act="Relu"), 32
    for cout, depth in ((48, 1), (104, 3), (208, 6), (440, 6)):
        for i in range(depth):
            stride = 1 if i else 2
            y = conv(g, x, cin, cout, 1, act="Relu")
            y = conv(g, y, cout, cout, 3, stride, groups=cout // 8, act="Relu")
            s = conv(g, g.node("GlobalAveragePool", y), cout, cin // 4, 1, act="Relu")
            y = g.node("Mul", y, conv(g, s, cin // 4, cout, 1, act="Sigmoid"))
            y = conv(g, y, cout, cout, 1)
            x = g.node("Relu", g.node("Add", y, x if i else conv(g, x, cin, cout, 1, stride)))
            cin = cout
    return classifier(g, x, cin), [1, 1000]


def mnasnet(g):
    """Tan et al., 2019: 1.0, 224."""
    x = conv(g, g.input([1, 3, 224, 224]), 3, 32, stride=2, act="Relu")
    x = conv(g, conv(g, x, 32, 32, groups=32, act="Relu"), 32, 16, 1)
    cin = 16
    stages = [  # expansion, channels, blocks, stride, kernel
        (3, 24, 3, 2, 3), (3, 40, 3, 2, 5), (6, 80, 3, 2, 5), (6, 96, 2, 1, 3), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ]  # fmt: skip
    for expand, cout, blocks, first, kernel in stages:
        for i in range(blocks):
            y = conv(g, x, cin, cin * expand, 1, act="Relu")
            y = conv(g, y, cin * expand, cin * expand, kernel, 1 if i else first, cin * expand, "Relu")
            y = conv(g, y, cin * expand, cout, 1)
            x = g.node("Add", x, y) if i else y
            cin = cout
    return classifier(g, conv(g, x, cin, 1280, 1, act="Relu"), 1280), [1, 1000]


def googlenet(g):
    """Szegedy et al., 2015, with batch norms in place of the norms over channels."""
    x = conv(g, g.input([1, 3, 224, 224]), 3, 64, 7, 2, act="Relu")
    x = conv(g, pool(g, x, 3, 2), 64, 64, 1, act="Relu")
    x = pool(g, conv(g, x, 64, 192, act="Relu"), 3, 2)
    cin = 192
    modules = [  # 1x1; before 3x3, 3x3; before 5x5, 5x5; behind the pool
        (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
        (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
        (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
    ]  # fmt: skip
    for m in modules:
        if not m:
            x = pool(g, x, 3, 2)
            continue
        a = conv(g, x, cin, m[0], 1, act="Relu")
        b = conv(g, conv(g, x, cin, m[1], 1, act="Relu"), m[1], m[2], 3, act="Relu")
        c = conv(g, conv(g, x, cin, m[3], 1, act="Relu"), m[3], m[4], 5, act="Relu")
        d = conv(g, pool(g, x, 3, 1), cin, m[5], 1, act="Relu")
        x = g.node("Concat", a, b, c, d, axis=1)
        cin = m[0] + m[2] + m[4] + m[5]
    return classifier(g, x, cin), [1, 1000]


def wide_resnet50(g):
    """Zagoruyko and Komodakis, 2016: ResNet-50 with twice the channels inside the blocks."""
    x = pool(g, conv(g, g.input([1, 3, 224, 224]), 3, 64, 7, 2, act="Relu"), 3, 2)
    cin = 64
    for wide, depth in ((128, 3), (256, 4), (512, 6), (1024, 3)):
        for i in range(depth):
            stride = 2 if wide > 128 and not i else 1
            y = conv(g, conv(g, x, cin, wide, 1, act="Relu"), wide, wide, 3, stride, act="Relu")
            y = conv(g, y, wide, 2 * wide, 1)
            x = g.node("Relu", g.node("Add", y, x if i else conv(g, x, cin, 2 * wide, 1, stride)))
            cin = 2 * wide
    return classifier(g, x, cin), [1, 1000]


def unet(g):
    """Ronneberger et al., 2015, with padded convolutions and a quarter of the channels, at 256."""
    size, cin, kept = 256, 3, []
    x = g.input([1, 3, size, size])
    for cout in (16, 32, 64, 128):
        x = conv(g, conv(g, x, cin, cout, act="Relu"), cout, cout, act="Relu")
        kept.append(x)
        x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        cin = cout
    x = conv(g, conv(g, x, 128, 256, act="Relu"), 256, 256, act="Relu")
    cin = 256
    for cout in (128, 64, 32, 16):
        up = g.weight(cin, cout, 2, 2, fan=cin)
        x = g.node("ConvTranspose", x, up, g.full(0.01, cout), kernel_shape=[2, 2], strides=[2, 2])
        x = g.node("Concat", kept.pop(), x, axis=1)
        x = conv(g, conv(g, x, 2 * cout, cout, act="Relu"), cout, cout, act="Relu")
        cin = cout
    return conv(g, x, cin, 2, 1), [1, 2, size, size]


def linear(g, x, cin, cout):
    """As exporters write it for tokens: a product and a sum."""
    return g.node("Add", g.node("MatMul", x, g.weight(cin, cout, fan=cin)), g.full(0.01, cout))


def norm(g, x, wide):
    return g.node("LayerNormalization", x, g.full(1, wide), g.full(0, wide), axis=-1, epsilon=1e-6)


def gelu(g, x):
    half = g.node("Mul", x, g.full(0.5))
    root = g.node("Div", x, g.full(2**0.5))
    return g.node("Mul", half, g.node("Add", g.node("Erf", root), g.full(1)))


def index(g, i):
    return g.const(numpy.array(i, numpy.int64))


def attention(g, x, tokens, wide, heads):
    each = wide // heads
    split = g.node("Reshape", linear(g, x, wide, 3 * wide), g.ints(1, tokens, 3, heads, each))
    three = g.node("Transpose", split, perm=[2, 0, 3, 1, 4])
    q, k, v = (g.node("Gather", three, index(g, i), axis=0) for i in range(3))
    scores = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2]))
    shares = g.node("Softmax", g.node("Mul", scores, g.full(each**-0.5)), axis=-1)
    y = g.node("Transpose", g.node("MatMul", shares, v), perm=[0, 2, 1, 3])
    return linear(g, g.node("Reshape", y, g.ints(1, tokens, wide)), wide, wide)


def vit_tiny(g):
    """Dosovitskiy et al., 2021: patches of 16, 12 layers of 192 channels and 3 heads, at 224."""
    wide, heads, tokens = 192, 3, 197
    x = g.node(
        "Conv", g.input([1, 3, 224, 224]), g.weight(wide, 3, 16, 16), g.full(0, wide),
        kernel_shape=[16, 16], strides=[16, 16],
    )  # fmt: skip
    x = g.node("Transpose", g.node("Reshape", x, g.ints(1, wide, 196)), perm=[0, 2, 1])
    x = g.node("Concat", g.weight(1, 1, wide, fan=wide), x, axis=1)
    x = g.node("Add", x, g.weight(1, tokens, wide, fan=wide))
    for _ in range(12):
        x = g.node("Add", x, attention(g, norm(g, x, wide), tokens, wide, heads))
        y = gelu(g, linear(g, norm(g, x, wide), wide, 4 * wide))
        x = g.node("Add", x, linear(g, y, 4 * wide, wide))
    x = g.node("Gather", norm(g, x, wide), index(g, 0), axis=1)
    return dense(g, x, wide, 1000), [1, 1000]


INPUTS = {
    "mobilenet_v1": (224, 224, 3),
    "efficientnet_b0": (224, 224, 3),
    "unet": (256, 256, 3),
    "vit_tiny": (224, 224, 3),
    "regnet_y_400mf": (224, 224, 3),
    "mnasnet": (224, 224, 3),
    "googlenet": (224, 224, 3),
    "wide_resnet50": (224, 224, 3),
}


def write(name, path):
    """Its file; the input is [1, C, H, W]."""
    g = Graph()
    output, shape = globals()[name](g)
    g.save(path, output, shape)
