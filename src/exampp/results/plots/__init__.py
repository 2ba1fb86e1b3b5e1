"""Plots: a function makes a Figure from plain values; SVG or PNG come without a browser."""
