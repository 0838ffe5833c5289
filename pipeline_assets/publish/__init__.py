"""Stage publish: accepted values into the archive, each document whole or not at all."""
