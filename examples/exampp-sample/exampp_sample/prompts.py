"""A prompt, as `exampp prompts NAME --toml` prints one to start from."""

SAMPLE_YES_NO = """
name = "sample-yes-no"
title = "Does the passage answer the question: yes or no"
grades = "question"
reading = "yes-no"
scale = { lowest = 0, highest = 1 }
slots = ["question", "context"]
cut = "context"
labels = ["no", "yes"]
user = '''
Does the passage answer the question? Say yes or no.
Question: {question}
Passage: {context}'''
"""
