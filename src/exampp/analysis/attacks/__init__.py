"""Attacks on a grader: attack battery, circularity, and models of the same family."""
