"""The function ``main`` of a module in canonical form, to be written anew."""

from dataclasses import dataclass

import tvm
from tvm import relay

from ..ir import Expr
from .dynamic import has_unknown_sizes
from .partition import canonical
from .sizes import has_named_sizes


@dataclass(frozen=True)
class Main:
    """``main`` of a module.

    Attributes
    ----------
    body : Expr
        Its canonical form, type-inferred.
    """

    body: Expr
    _module: tvm.IRModule

    @classmethod
    def read(cls, mod: tvm.IRModule, params: dict | None = None) -> "Main":
        """Bind the parameters, and bring the module into canonical form.

        Raises
        ------
        TypeError
            If ``mod`` is not a Relay module.
        ValueError
            If a size is not known: what is written could not be built for the graph executor.
        """
        module, _ = canonical(mod, params)
        main = module["main"]
        if has_unknown_sizes(main) or has_named_sizes(main):
            raise ValueError("expected a Relay module with static shapes, got one without")
        return cls(main.body, module)

    def with_body(self, body: Expr) -> tvm.IRModule:
        """Return the module with another body of ``main``."""
        old = self._module["main"]
        module = tvm.IRModule(self._module.functions, self._module.type_definitions)
        module["main"] = relay.Function(old.params, body, None, old.type_params, old.attrs)
        return relay.transform.InferType()(module)
