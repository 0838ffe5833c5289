"""The workload `support_tickets`: what short messages to a customer service are about.

Its modules import each other relative to this folder, so that a copy of it works under another
name and outside the package as well.
"""
