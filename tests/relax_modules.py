"""Relax modules of more than one block or function, for the tests that must not trip over them."""

from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Branches:
    """A product before and after a branch, and one inside."""

    @R.function
    def main(
        p: R.Tensor((), "bool"), x: R.Tensor((4, 7), "float32"), w: R.Tensor((7, 7), "float32")
    ) -> R.Tensor((4, 7), "float32"):
        y = R.matmul(x, w)
        if p:
            a = R.matmul(y, w)
            z = R.nn.relu(R.add(a, y))
        else:
            z = R.exp(y)
        return R.matmul(z, w)


@I.ir_module
class Functions:
    """A function that another one calls before and after a product of its own."""

    @R.function(private=True)
    def layer(x: R.Tensor((4, 7), "float32"), w: R.Tensor((7, 7), "float32")) -> R.Tensor(
        (4, 7), "float32"
    ):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z

    @R.function
    def main(x: R.Tensor((4, 7), "float32"), w: R.Tensor((7, 7), "float32")) -> R.Tensor(
        (4, 7), "float32"
    ):
        cls = Functions
        with R.dataflow():
            a = cls.layer(x, w)
            b = R.matmul(a, w)
            c = cls.layer(b, w)
            R.output(c)
        return c
