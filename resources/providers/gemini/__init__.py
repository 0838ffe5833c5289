"""The `gemini` provider: Google's Gemini Developer API, in batch and online."""
