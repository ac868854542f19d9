# SPDX-License-Identifier: Apache-2.0
"""What is compared: networks, sizes and batches.  How is left to the others."""

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Case:
    """A network of Edgewise's zoo, as published or at another input and number of classes."""

    network: str
    size: Optional[int] = None  # square input; None: the network's own
    classes: Optional[int] = None
    batch: int = 1

    @property
    def name(self):
        return f"{self.network}@{self.size}" if self.size else self.network

    @property
    def title(self):
        at = f" at {self.size}" if self.size else ""
        batch = f", batch {self.batch}" if self.batch > 1 else ""
        classes = f", {self.classes} classes" if self.classes and self.batch > 1 else ""
        return f"{self.network}{at}{batch}{classes}"

    def options(self):
        """As edgewise's commands take them."""
        o = []
        if self.size:
            o += ["--input", f"{self.size}x{self.size}x3"]
        if self.classes:
            o += ["--classes", str(self.classes)]
        return o

    def shape(self, own: Tuple[int, ...]):
        """[N, C, H, W], of clips [N, C, T, H, W]; `own` is the network's own [T,] H, W, C."""
        *time, h, w, c = own
        return (self.batch, c, *time, self.size or h, self.size or w)


INFER = [
    Case("lenet5"),
    Case("alexnet"),
    Case("vgg11"),
    Case("vgg19"),
    Case("resnet18"),
    Case("resnet50"),
    Case("resnext50_32x4d"),
    Case("squeezenet1_1"),
    Case("densenet121"),
    Case("shufflenet_v2_x1_0"),
    Case("mobilenet_v2"),
    Case("mobilenet_v3_large"),
    Case("vgg11_cifar"),
    Case("mobilenet_v2_cifar"),
    Case("resnet18", size=32, classes=10),
]

# Networks that no kernel and no rule was tuned on; onnx_networks.py has those that the zoo lacks.
OTHERS = [
    Case("vgg16"),
    Case("resnet34"),
    Case("mobilenet_v1"),
    Case("efficientnet_b0"),
    Case("mobilenet_v3_small"),
    Case("shufflenet_v2_x0_5"),
    Case("unet"),
    Case("vit_tiny"),
    Case("regnet_y_400mf"),
    Case("mnasnet"),
    Case("googlenet"),
    Case("wide_resnet50"),
]

# At their own size: the adaptive pools of some have no ONNX form at another one.
INT8 = [c for c in INFER if not c.size]

TRAIN = [
    Case("lenet5", batch=16),
    Case("resnet18", size=32, classes=10, batch=16),
    Case("mobilenet_v2", size=32, classes=10, batch=64),
    Case("mobilenet_v3_large", size=224, classes=203, batch=16),
    Case("squeezenet1_1", size=224, batch=16),
    Case("alexnet", size=224, batch=64),
]

OTHERS_TRAIN = [
    Case("resnet50", size=64, batch=16),
    Case("resnext50_32x4d", size=64, batch=16),
    Case("densenet121", size=64, batch=16),
    Case("shufflenet_v2_x1_0", size=64, batch=16),
    Case("vgg11", size=64, batch=16),
    Case("mobilenet_v3_small", size=96, batch=16),
]

VIDEO_NETWORKS = [
    "c3d_small", "video_autoencoder", "video_densenet", "r3d_18", "mc3_18", "r2plus1d_18",
]  # fmt: skip
VIDEO = [Case(n) for n in VIDEO_NETWORKS]
# What quantize takes: a transposed convolution stays float32.
VIDEO_INT8 = [c for c in VIDEO if c.network != "video_autoencoder"]
VIDEO_TRAIN = [Case(n, batch=4) for n in VIDEO_NETWORKS]


def select(cases, wanted):
    """Those whose name or network is in `wanted`; all where nothing is."""
    return [c for c in cases if not wanted or c.name in wanted or c.network in wanted]
