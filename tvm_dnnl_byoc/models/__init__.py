"""The check of whole models behind ``scripts/check_models.py``.

``catalogue`` lists the models, ``zoo``, ``ocr`` and ``pytorch`` bring them into Relay together with
the answers of the framework that they come from, ``check`` partitions, builds, runs and compares
one, ``worker`` does so in a process of its own, ``report`` prints what came out.
"""
