"""Post-training quantization: from a float32 module and real inputs to one in int8.

``calibrate`` runs the model and writes down what it sees as a `Recipe`, which can be edited, saved,
and used without the data; ``convert`` applies it. What ``convert`` returns is for
``partition_for_dnnl``, like any model that comes quantized.
"""

from .calibrate import calibrate
from .convert import convert
from .observers import OBSERVERS
from .onnx_export import to_onnx
from .recipe import Recipe
from .sensitivity import sensitivity

__all__ = ["OBSERVERS", "Recipe", "calibrate", "convert", "sensitivity", "to_onnx"]
