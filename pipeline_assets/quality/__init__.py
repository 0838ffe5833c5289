"""Quality: a sample of what the rules accepted, looked at by people, and what it says of the rest.

Belongs here: the draw, the error rates and the asset. Does not belong here: the decisions of
reviewers (`review`), and what a document's slice is (`pipeline_assets/slices.py`). Stages may
import this package; it imports none of them.
"""
