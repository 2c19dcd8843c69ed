"""The function ``main`` as one expression, whatever its blocks, to be written anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax

from ..ir import Expr
from .bounds import with_bounded_sizes
from .canonicalize import canonicalize
from .compat import relax_type
from .read import Block
from .write import Writer


@dataclass(frozen=True)
class Main:
    """``main`` of a module.

    Attributes
    ----------
    body : Expr
        Its canonical form.
    """

    body: Expr
    _module: tvm.IRModule
    _read: Block

    @classmethod
    def read(cls, mod: tvm.IRModule, params: Mapping[str, Any] | None = None) -> "Main":
        """Bind the parameters, and read the function.

        Raises
        ------
        TypeError
            If ``mod`` is not a Relax module.
        ValueError
            If it has no ``main``, or one whose calls have an order that has to be kept.
        """
        if not isinstance(mod, tvm.IRModule):
            raise TypeError(f"expected a tvm.IRModule, got {type(mod).__name__}")
        if params:
            mod = relax.transform.BindParams("main", dict(params))(mod)
        # What is bound in dataflow could not be bound outside of it, as all is written.
        mod = relax.transform.ToNonDataflow()(relax.transform.Normalize()(with_bounded_sizes(mod)))
        functions = {var.name_hint: function for var, function in mod.functions.items()}
        main = functions.get("main")
        if not isinstance(main, relax.Function) or not main.is_pure:
            got = "one that is not pure" if main is not None else "none"
            raise ValueError(f"expected a module with a pure Relax function main, got {got}")
        read = Block.read_function(main)
        return cls(canonicalize(read.body)[0], mod, read)

    def with_body(self, body: Expr) -> tvm.IRModule:
        """Return the module with another body of ``main``, made of expressions of its own."""
        writer = Writer(self._read)
        result = writer.write(body)
        old = self._module["main"]
        function = relax.Function(
            old.params,
            relax.SeqExpr([relax.BindingBlock(writer.bindings)], result),
            relax_type(result),
            old.is_pure,
            old.attrs,
        )
        module = tvm.IRModule(self._module.functions, attrs=self._module.attrs)
        module["main"] = function
        return relax.transform.ConvertToDataflow(min_size=1)(relax.transform.Normalize()(module))
