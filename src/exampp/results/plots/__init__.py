"""Plots: functions return a Figure from plain values; SVG and PNG need no browser."""
