"""A real, small language model on this machine answers a folder of labelled documents."""
