"""Graders: one small class a backend; the only package that talks to models or servers."""
