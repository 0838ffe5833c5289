"""Alerts leave the house: what each kind means, what a channel has to be told, and sending it."""
