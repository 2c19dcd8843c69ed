"""Each cell of README.md's table of fusions: what oneDNN ran, and the numbers."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from front import (
    build_plainly,
    check,
    const,
    fused,
    inputs_for,
    module,
    reasons_against_fusion,
    relay,
    run,
    var,
)
from fusion_table import ANCHORS, APART, PATTERNS, markdown

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("name", ANCHORS)
def test_fusions(name):
    anchor = ANCHORS[name]
    x = var("x", *anchor.shape)

    def all_patterns(expression):
        # No two layers are the same: they would be one.
        return module(
            *(
                apply(expression(x, 2 * i), expression(x, 2 * i + 1), anchor.axis)
                for i, (_, apply) in enumerate(PATTERNS.values())
            )
        )

    mod, reference = all_patterns(anchor.expression), None
    if anchor.plain:
        reference = run(build_plainly(all_patterns(anchor.plain)), inputs_for(mod))
    expected = Counter()
    for pattern, (post_ops, _) in PATTERNS.items():
        fuses = post_ops and (name, pattern) not in APART
        expected[f"{anchor.kind}:{post_ops}" if fuses else anchor.kind] += 1
        expected[anchor.kind] += "sum" in post_ops  # the one that is added to
    missing = expected - Counter(fused(check(mod, reference=reference)))
    # On another instruction set oneDNN may refuse a fusion: then, and only then, it may be missing.
    reasons = reasons_against_fusion(mod)
    refused = sum(" implementation for " in reason for reason in reasons)
    assert missing.total() <= refused, (missing, reasons)


def test_add_then_layer_norm():
    """The addition belongs to the dense layer before it; layer normalisation takes no operand."""
    x = var("x", 5, 24)
    y = relay.nn.bias_add(relay.nn.dense(x, const(24, 24)), const(24))
    mod = module(relay.nn.layer_norm(y + x, const(24, seed=2), const(24, seed=3), epsilon=1e-12))
    assert fused(check(mod)) == ["inner_product:binary_add", "layer_normalization"]


def test_divide_add_softmax():
    """Attention's scale and mask are post-ops of the product."""
    q, k = var("q", 3, 5, 8), var("k", 3, 7, 8)
    scores = relay.nn.batch_matmul(q, k) / relay.const(np.float32(8**0.5))
    steps = fused(check(module(relay.nn.softmax(scores + var("mask", 3, 1, 7), axis=-1))))
    assert steps == ["matmul:eltwise_linear+binary_add", "softmax"]


def test_readme_has_the_table():
    assert markdown() in README.read_text(encoding="utf-8")
