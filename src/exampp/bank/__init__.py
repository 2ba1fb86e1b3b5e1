"""Owning a bank: edits, history, checks, and a sealed part."""
