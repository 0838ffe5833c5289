"""The reference workload: title, product identifiers, language and description of manuals.

Holds what is asked (`prompt.md`, `output_schema.json`), what is answered (`answer.py`), the figures
that acceptance uses (`thresholds.yaml`) and the rules that answer without a model (`baseline/`).
"""
