"""OpenAI: Batch jobs and single calls of Responses and Chat Completions, through its SDK."""
