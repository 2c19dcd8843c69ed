"""Networks for torch, written out: torchvision does not import beside the CPU build of torch."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    """A block of ResNet50."""

    def __init__(self, inputs, width, stride, project):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        self.shortcut = (
            nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )
            if project
            else nn.Identity()
        )

    def forward(self, x):  # noqa: D102
        return torch.relu(self.layers(x) + self.shortcut(x))


def resnet50(classes=1000):
    """ResNet50, version 1.5: the strides are in the 3 × 3 convolutions."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, stride if i == 0 else 1, project=i == 0))
            inputs = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return randomised(nn.Sequential(*layers))


class InvertedResidual(nn.Module):
    """A block of MobileNetV3 with a squeeze-and-excitation."""

    def __init__(self, channels, width):
        super().__init__()
        self.expand = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.Hardswish()),
            nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
            *(nn.BatchNorm2d(width), nn.Hardswish()),
        )
        self.excite = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            *(nn.Conv2d(width, width // 4, 1), nn.ReLU()),
            *(nn.Conv2d(width // 4, width, 1), nn.Hardsigmoid()),
        )
        self.project = nn.Sequential(
            nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x):  # noqa: D102
        y = self.expand(x)
        return x + self.project(y * self.excite(y))


def mobilenet(classes=10):
    """A few blocks of MobileNetV3."""
    layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
    layers += [InvertedResidual(16, 64) for _ in range(3)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes)]
    return randomised(nn.Sequential(*layers))


def randomised(model, seed=0):
    """Give batch norms statistics, which after initialisation do nothing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.uniform_(-0.2, 0.2, generator=generator)
                layer.running_var.uniform_(0.5, 1.5, generator=generator)
                layer.weight.uniform_(0.5, 1.0, generator=generator)
                layer.bias.uniform_(-0.2, 0.2, generator=generator)
    return model.eval()


class Bert(nn.Module):
    """BERT with random weights, from token ids to all of its outputs."""

    def __init__(self, **config):
        super().__init__()
        import transformers

        self.model = transformers.BertModel(transformers.BertConfig(**config)).eval()

    def forward(self, ids):  # noqa: D102
        return tuple(self.model(input_ids=ids, return_dict=False))


class BertEncoder(Bert):
    """The same from the word embeddings on, to the last hidden states."""

    def forward(self, embeddings):  # noqa: D102
        return self.model(inputs_embeds=embeddings, return_dict=False)[0]
