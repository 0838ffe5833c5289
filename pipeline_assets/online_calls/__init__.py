"""Online calls: bounded, adaptive, repeatable; shared by records and canaries."""
