"""Exams, servers, models and readers of pages that several tests use."""
