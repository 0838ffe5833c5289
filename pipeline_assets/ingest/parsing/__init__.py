"""Document parsing: bytes in, pages of text out, in worker processes that may die.

`model` holds the words, `pool` is what the stage calls; every other module runs inside a worker.
Nothing is imported here: a worker must set its memory limit before any native library loads.
"""
