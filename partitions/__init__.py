"""What a run is keyed by: processing versions, their specs and their digest."""
