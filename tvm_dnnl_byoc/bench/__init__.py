"""The benchmark behind ``scripts/bench_gluoncv.py``.

``models`` prepares a GluonCV network, a module of ``backends`` builds it for one framework,
``worker`` runs one backend in a process of its own, ``runner`` conducts the workers in interleaved
rounds, ``results`` holds what came out, ``report`` and ``plot`` show it.
"""
