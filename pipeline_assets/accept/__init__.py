"""Stage accept: collected answers judged; nothing outside sees them before that."""
