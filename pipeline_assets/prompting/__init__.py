"""Requests to a model, for records and canaries: template, document text, provider format."""
