"""Each cell of README.md's table of fusions: what oneDNN ran, and the numbers."""

from collections import Counter
from pathlib import Path

import pytest
from fusion_table import ANCHORS, APART, PATTERNS, markdown
from helpers import build_plainly, check, fused, inputs_for, module, run, var

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", ANCHORS)
def test_fusions(name):
    anchor = ANCHORS[name]
    x = var("x", *anchor.shape)

    def all_patterns(expression):
        return module(*(f(expression(x), expression(x), anchor.axis) for _, f in PATTERNS.values()))

    mod, reference = all_patterns(anchor.expression), None
    if anchor.plain:
        reference = run(build_plainly(all_patterns(anchor.plain)), inputs_for(mod))
    expected = Counter()
    for pattern, (post_ops, _) in PATTERNS.items():
        fuses = post_ops and (name, pattern) not in APART
        expected[f"{anchor.kind}:{post_ops}" if fuses else anchor.kind] += 1
        expected[anchor.kind] += "sum" in post_ops  # the one that is added to
    assert Counter(fused(check(mod, reference=reference, tolerance=3e-6))) == expected


def test_readme_has_the_table():
    assert markdown() in README.read_text(encoding="utf-8")
