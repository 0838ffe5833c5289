"""Whole lives of a small archive, thousands of them, each with failures drawn from one seed.

Belongs here: the schedule (`plan.py`), who runs and who dies (`gate.py`, `schedule.py`), what is
not real (`memory.py`, `provider.py`, `stubs.py`), what workers do (`workers.py`), and what must
hold (`oracles.py`). Does not belong here: tests of files, parsing and rules, which have tests of
their own. `docs/simulation.md` says what is real and what is not.
"""
