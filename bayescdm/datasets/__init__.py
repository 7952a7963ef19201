"""Packaged studies of published figures."""
