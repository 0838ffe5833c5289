"""Approval: documents of sources that demand somebody's decision before they are processed."""
