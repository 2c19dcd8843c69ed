"""Networks written in PyTorch, with PyTorch's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import native
from .case import Case, NotInstalledError
from .catalogue import Entry

if TYPE_CHECKING:
    import torch


def load(entry: Entry) -> Case:
    """Instantiate one of the networks, run it with PyTorch, and convert it.

    Raises
    ------
    NotInstalledError
        If PyTorch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise NotInstalledError(
            "torch is not installed (and cannot be beside gluoncv: use another environment)"
        ) from None
    torch.manual_seed(0)
    network = _NETWORKS[entry.name]().eval()
    for buffer in (m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d)):
        torch.nn.init.normal_(buffer.running_mean, 0.1, 0.3)
        torch.nn.init.uniform_(buffer.running_var, 0.5, 1.5)
        torch.nn.init.uniform_(buffer.weight, 0.5, 1.5)
        torch.nn.init.normal_(buffer.bias, 0.1, 0.3)
    data = np.random.default_rng(0).standard_normal(entry.shape, dtype=np.float32)
    with torch.no_grad():
        reference = network(torch.from_numpy(data)).numpy()
        name, module, params = _imported(network, torch.from_numpy(data))
    return Case(
        module=module,
        params=params,
        inputs={name: data},
        references=[reference],
        framework="PyTorch",
    )


def _imported(network: torch.nn.Module, data: torch.Tensor):
    """Return what the input is called, the module, and its weights."""
    import torch

    if native.front() == "relax":
        from tvm.relax.frontend.torch import from_exported_program

        program = torch.export.export(network, (data,))
        (name,) = program.graph_signature.user_inputs
        return name, from_exported_program(program, keep_params_as_input=False), {}
    from tvm import relay

    traced = torch.jit.trace(network, data)
    return "data", *relay.frontend.from_pytorch(traced, [("data", tuple(data.shape))])


def _cnn():
    """Convolutions of every kind, a residual addition, a transposed convolution, activations."""
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, channels: int):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
                nn.BatchNorm2d(channels),
                nn.SiLU(),
                nn.Conv2d(channels, channels, 1),
                nn.BatchNorm2d(channels),
            )

        def forward(self, x):
            return (self.body(x) + x).relu()

    return nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2),
        nn.BatchNorm2d(24),
        nn.LeakyReLU(0.1),
        Residual(24),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(24, 40, 3, padding=2, dilation=2, groups=4),
        nn.Hardswish(),
        nn.ConvTranspose2d(40, 16, 4, stride=2, padding=1),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 11),
    )


def _mlp():
    """Dense layers with the activations and the normalisation of transformers."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(96, 160),
        nn.GELU(),
        nn.LayerNorm(160),
        nn.Linear(160, 64),
        nn.Tanh(),
        nn.Dropout(0.1),
        nn.Linear(64, 10),
        nn.Softmax(dim=-1),
    )


def _resnet50():
    from .torch_networks import resnet50

    return resnet50()


def _mobilenet():
    from .torch_networks import mobilenet

    return mobilenet()


_NETWORKS = {
    "torch_cnn": _cnn,
    "torch_mlp": _mlp,
    "torch_mobilenet": _mobilenet,
    "torch_resnet50": _resnet50,
}
