"""Random data, and how results are compared; for the tests of both TVMs."""

import numpy as np

TOLERANCE = 1e-5


def random(*shape, seed=0, low=-1.0, high=1.0):
    """Asymmetric float32 data: uniform, its mean not 0, no two values alike."""
    rng = np.random.default_rng([seed, *shape])
    return (rng.uniform(low, high, shape) + 0.125 * (high - low)).astype("float32")


def assert_close(actual, expected, tolerance=TOLERANCE):
    """Compare output by output, relative to the scale of each."""
    assert len(actual) == len(expected)
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert a.shape == e.shape, f"output {i}"
        assert a.dtype == e.dtype, f"output {i}"
        assert not np.isnan(e).any(), f"output {i}: the expected values are no test"
        scale = np.abs(e[np.isfinite(e)]).max(initial=0) or 1.0
        np.testing.assert_allclose(
            a / scale, e / scale, rtol=0, atol=tolerance, err_msg=f"output {i}, scale {scale}"
        )


def fused(steps):
    """Return steps as short texts: ``convolution:eltwise_relu``."""
    return [f"{s['kind']}:{s['post_ops']}" if s["post_ops"] else s["kind"] for s in steps]
