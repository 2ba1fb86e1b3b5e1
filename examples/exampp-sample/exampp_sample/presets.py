"""A preset: where the logs of a help desk have questions, passages and answers."""

HELPDESK = """
name = "helpdesk"
sniff = [["ticket", "snippets"]]
needs = ["ticket", "snippets", "reply"]
system = [["release"]]

[fields]
query = ["ticket.question"]
query_id = ["ticket.number"]
contexts = ["snippets"]
response = ["{reply,draft}.text"]
"""
