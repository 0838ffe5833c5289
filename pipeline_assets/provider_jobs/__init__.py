"""The life of a job at a provider, the same for batches and canaries; shared by the stages."""
