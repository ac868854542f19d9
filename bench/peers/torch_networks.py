# SPDX-License-Identifier: Apache-2.0
"""Networks of Edgewise's zoo that torchvision lacks, in PyTorch, with the same names of weights."""

import torch
import torchvision
from torch import nn
from torch.nn import functional


class LeNet5(nn.Module):
    """ReLU, max pooling, padding 2 in the first convolution."""

    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x)))))


class Block(nn.Module):
    """Of MobileNetV2 for small images: a shortcut everywhere."""

    def __init__(self, cin, cout, expand, stride):
        super().__init__()
        mid = cin * expand
        self.residual = nn.Sequential(
            nn.Conv2d(cin, mid, 1), nn.BatchNorm2d(mid), nn.ReLU6(),
            nn.Conv2d(mid, mid, 3, stride, 1, groups=mid), nn.BatchNorm2d(mid), nn.ReLU6(),
            nn.Conv2d(mid, cout, 1), nn.BatchNorm2d(cout),
        )  # fmt: skip
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride), nn.BatchNorm2d(cout))

    def forward(self, x):
        return self.residual(x) + self.shortcut(x)


class MobileNetV2Cifar(nn.Module):
    """As the SCALE study has it."""

    STAGES = [(16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]

    def __init__(self, num_classes):
        super().__init__()
        self.pre = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU6())
        cin = 32
        for s, (cout, repeats, stride) in enumerate(self.STAGES):
            blocks = []
            for i in range(repeats):
                # The study's stage 5 keeps its size at 32 x 32.
                blocks.append(Block(cin, cout, 6 if s else 1, 1 if i else stride))
                cin = cout
            stage = nn.Sequential(*blocks) if repeats > 1 else blocks[0]
            setattr(self, f"stage{s + 1}", stage)
        self.conv1 = nn.Sequential(nn.Conv2d(320, 1280, 1), nn.BatchNorm2d(1280), nn.ReLU6())
        self.conv2 = nn.Conv2d(1280, num_classes, 1)

    def forward(self, x):
        x = self.pre(x)
        for s in range(len(self.STAGES)):
            x = getattr(self, f"stage{s + 1}")(x)
        return self.conv2(functional.adaptive_avg_pool2d(self.conv1(x), 1)).flatten(1)


class C3DSmall(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv3d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv3d(16, 24, 3, padding=1)
        self.conv3 = nn.Conv3d(24, 192, 3, padding=1)
        self.fc1 = nn.Linear(192 * 4 * 3 * 3, 2920)
        self.fc2 = nn.Linear(2920, num_classes)

    def forward(self, x):
        x = functional.max_pool3d(functional.relu(self.conv1(x)), (1, 2, 2))
        x = functional.max_pool3d(functional.relu(self.conv2(x)), 2)
        x = functional.max_pool3d(functional.relu(self.conv3(x)), 2).flatten(1)
        return self.fc2(functional.relu(self.fc1(x)))


class VideoAutoencoder(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv3d(3, 41, 3, (1, 2, 2), 1), nn.LeakyReLU(0.1),
            nn.Conv3d(41, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(3136, 49),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(49, 3136), nn.LeakyReLU(0.1), nn.Unflatten(1, (8, 8, 7, 7)),
            nn.ConvTranspose3d(8, 33, (2, 4, 4), 2, (0, 1, 1)), nn.LeakyReLU(0.1),
            nn.ConvTranspose3d(33, 3, (1, 4, 4), (1, 2, 2), (0, 1, 1)),
        )  # fmt: skip

    def forward(self, x):
        return self.decoder(self.encoder(x))


class VideoDenseLayer(nn.Module):
    def __init__(self, cin):
        super().__init__()
        self.add = nn.Sequential(
            nn.BatchNorm3d(cin), nn.ReLU(), nn.Conv3d(cin, 16, 1, bias=False),
            nn.BatchNorm3d(16), nn.ReLU(), nn.Conv3d(16, 8, 3, padding=1, bias=False),
        )  # fmt: skip

    def forward(self, x):
        return torch.cat([x, self.add(x)], 1)


class VideoDenseNet(nn.Module):
    LAYERS = (2, 4, 2, 8)

    def __init__(self, num_classes):
        super().__init__()
        c = 38
        parts = [nn.Conv3d(3, c, 3, 2, 1, bias=False), nn.BatchNorm3d(c), nn.ReLU()]
        for block, layers in enumerate(self.LAYERS):
            for _ in range(layers):
                parts.append(VideoDenseLayer(c))
                c += 8
            if block < len(self.LAYERS) - 1:
                parts += [
                    nn.BatchNorm3d(c), nn.ReLU(), nn.Conv3d(c, c, 1, bias=False), nn.AvgPool3d(2),
                ]  # fmt: skip
        parts += [nn.BatchNorm3d(c), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten()]
        self.all = nn.Sequential(*parts, nn.Linear(c, num_classes))

    def forward(self, x):
        return self.all(x)


OWN = {
    "lenet5": LeNet5,
    "mobilenet_v2_cifar": MobileNetV2Cifar,
    "c3d_small": C3DSmall,
    "video_autoencoder": VideoAutoencoder,
    "video_densenet": VideoDenseNet,
}
AUTOENCODERS = {"video_autoencoder"}


def build(network, classes):
    if network in OWN:
        return OWN[network](classes)
    video = torchvision.models.video
    home = video if hasattr(video, network) else torchvision.models
    return getattr(home, network)(weights=None, num_classes=classes)
