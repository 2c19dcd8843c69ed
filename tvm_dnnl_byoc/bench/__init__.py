"""The benchmark behind ``scripts/bench_gluoncv.py``.

``models`` prepares a GluonCV network, ``backends`` builds it for one framework, ``worker`` runs one
backend in a process of its own, ``runner`` conducts the workers in interleaved rounds, ``report``
holds and prints what came out.
"""
