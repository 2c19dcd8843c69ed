#!/usr/bin/env python3
"""Trains small networks on scikit-learn's digits, and says how often each precision is right.

python scripts/accuracy.py --seeds 3
"""

import argparse
import os
import sys
from pathlib import Path

os.environ["TOPHUB_LOCATION"] = "NONE"
os.environ.setdefault("DNNL_BYOC_TUNE", "0")  # which does not change what is computed
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mxnet as mx
import numpy as np
import tvm
from mxnet.gluon import Trainer, loss, nn
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits
from tvm import relay
from tvm.contrib import graph_executor

from tvm_dnnl_byoc import partition_for_dnnl, quantize

_CALIBRATION, _TEST, _BATCH = 100, 597, 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3, help="networks of each kind")
    args = parser.parse_args()

    table = Table(title=f"top-1 on {_TEST} digits of {args.seeds} trainings, in per cent")
    table.add_column("computed in")
    rows: dict[str, list[str]] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name, build in NETWORKS.items():
            table.add_column(name, justify="right")
            task = progress.add_task(name, total=args.seeds)
            right: dict[str, list[float]] = {}
            for seed in range(args.seeds):
                for way, share in accuracies(build, seed, args.epochs).items():
                    right.setdefault(way, []).append(share)
                progress.advance(task)
            for way, shares in right.items():
                rows.setdefault(way, []).append(f"{100 * np.mean(shares):.2f}")
    for way, cells in rows.items():
        table.add_row(way, *cells)
    Console().print(table)


def accuracies(build, seed, epochs):
    """Train a network; return the share of right answers for each way to compute it."""
    data, labels = digits(seed)
    train, test = data[_TEST:], data[:_TEST]
    network = trained(build, train, labels[_TEST:], seed, epochs)
    mod, params = relay.frontend.from_mxnet(network, shape={"data": test.shape})
    calibration = [train[:_CALIBRATION]]
    small, _ = relay.frontend.from_mxnet(network, shape={"data": calibration[0].shape})

    found = {}
    for precision in ("f32", "bf16"):
        found[precision] = share(partition_for_dnnl(mod, params, precision=precision), test, labels)
    ways = {observer: {"observer": observer} for observer in quantize.OBSERVERS}
    ways["mse, equalized"] = {"observer": "mse", "equalization": True}
    for way, options in ways.items():
        recipe = quantize.calibrate(small, params, calibration, **options)
        converted = quantize.convert(mod, params, recipe)
        found[f"int8, {way}"] = share(partition_for_dnnl(converted), test, labels)
        if way == "entropy":
            mixed = partition_for_dnnl(converted, precision="bf16")
            found["int8, entropy; the rest in bf16"] = share(mixed, test, labels)
    return found


def digits(seed):
    """Return all images in random order, (1797, 1, 8, 8) in 0–1, and their labels."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    return (images.reshape(-1, 1, 8, 8) / 16)[order].astype("float32"), labels[order]


def share(mod, data, labels):
    """Return how many of the images a partitioned module takes for what they are."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm")
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(data=data)
    return float((executor.get_output(0).numpy().argmax(1) == labels[: len(data)]).mean())


class Residual(nn.HybridBlock):
    """The basic block of a ResNet."""

    def __init__(self, channels, strides, shortcut):
        super().__init__()
        self.body = nn.HybridSequential()
        for i in range(2):
            self.body.add(nn.Conv2D(channels, 3, strides if i == 0 else 1, 1, use_bias=False))
            self.body.add(nn.BatchNorm())
            if i == 0:
                self.body.add(nn.Activation("relu"))
        self.shortcut = nn.HybridSequential()
        if shortcut:
            self.shortcut.add(nn.Conv2D(channels, 1, strides, use_bias=False), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        """Return ReLU(body(x) + shortcut(x))."""
        return F.relu(self.body(x) + self.shortcut(x))


def resnet():
    """Return a ResNet-20 as for CIFAR-10."""
    network = nn.HybridSequential()
    network.add(nn.Conv2D(16, 3, 1, 1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    for stage, channels in enumerate((16, 32, 64)):
        for block in range(3):
            first = stage > 0 and block == 0
            network.add(Residual(channels, 2 if first else 1, shortcut=first))
    network.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10))
    return network


def mobilenet():
    """Return alternating depthwise and 1 × 1 convolutions with ReLU6."""
    network = nn.HybridSequential()

    def convolution(channels, kernel, strides=1, groups=1):
        padding = kernel // 2
        network.add(
            nn.Conv2D(channels, kernel, strides, padding, groups=groups, use_bias=False),
            nn.BatchNorm(),
            nn.HybridLambda(lambda F, x: F.clip(x, 0, 6)),
        )

    convolution(16, 3)
    before = 16
    for channels, strides in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
        convolution(before, 3, strides, groups=before)
        convolution(channels, 1)
        before = channels
    network.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10))
    return network


NETWORKS = {"ResNet-20": resnet, "MobileNet": mobilenet}


def trained(build, images, labels, seed, epochs):
    """Return a network after so many epochs of Adam, the images shifted by up to a pixel."""
    mx.random.seed(seed)
    rng = np.random.default_rng(seed)
    network = build()
    network.initialize(mx.init.Xavier())
    network.hybridize()
    steps = epochs * (len(images) // _BATCH)
    schedule = mx.lr_scheduler.CosineScheduler(steps, base_lr=3e-3, final_lr=1e-5)
    rates = {"learning_rate": schedule.base_lr, "lr_scheduler": schedule}
    trainer = Trainer(network.collect_params(), "adam", rates)
    criterion = loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for begin in range(0, len(order) - _BATCH + 1, _BATCH):
            chosen = order[begin : begin + _BATCH]
            batch = np.roll(images[chosen], tuple(rng.integers(-1, 2, 2)), (2, 3))
            with mx.autograd.record():
                error = criterion(network(mx.nd.array(batch)), mx.nd.array(labels[chosen]))
            error.backward()
            trainer.step(_BATCH)
    return network


if __name__ == "__main__":
    main()
