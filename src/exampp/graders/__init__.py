"""Graders: one small class per backend; the only package that calls models or servers."""
