"""The pipeline: one folder a stage, in the order that data flows. Nothing is imported here."""
