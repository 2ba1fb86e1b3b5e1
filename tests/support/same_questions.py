"""Pairs of questions of one query, told apart by hand before any code had read them.

Two questions are the same where whoever answers one has answered the other: they differ in form
alone (case, punctuation, articles, the number of a noun, words that narrow nothing). They are
distinct where they differ in a name, a number, a negation, an order, or in what is asked.
"""

SAME: tuple[tuple[str, str], ...] = (
    ("How do rivers carve valleys?", "How do the rivers carve a valley?"),
    ("What is a tide?", "what is a tide"),
    ("What is a tide?", "What is the tide?"),
    ("Why do tides rise?", "Why Do Tides Rise?"),
    ("WHY DO TIDES RISE?", "Why do tides rise?"),
    ("How does a volcano erupt?", "How do volcanoes erupt?"),
    ("What are the causes of floods?", "What are the causes of a flood?"),
    ("What is the cause of floods?", "What are the causes of floods?"),
    ("What are the main causes of floods?", "What are the causes of floods?"),
    ("What are some causes of floods?", "What are the causes of floods?"),
    ("What are the key benefits of sleep?", "What are the major benefits of sleep?"),
    ("What are the different types of coral?", "What are the types of coral?"),
    ("What's a tide?", "What is a tide?"),
    ("Who\u2019s the author of Dune?", "Who is the author of Dune?"),
    ("What are long-term effects of smoking?", "What are the long term effects of smoking?"),
    ("What did Darwin\u2019s theory explain?", "What did Darwin's theory explain?"),
    ("Where was the caf\u00e9 opened?", "Where was the cafe\u0301 opened?"),
    ("What is photo\u200bsynthesis?", "What is photosynthesis?"),
    ("What  is\u00a0rain?", "What is rain?"),
    ("Which country exports rice?", "Which countries export rice?"),
    ("In 1990, who won the race?", "In 1990 who won the race?"),
    ("What is “dark matter”?", "What is dark matter?"),
    ("What do the air scatter?", "What does air scatter?"),
    ("Why isn't glass a crystal?", "Why is not glass a crystal?"),
)

DISTINCT: tuple[tuple[str, str], ...] = (
    # a name
    ("Who was the first president of France?", "Who was the first president of Ghana?"),
    ("When did William conquer the town?", "When did Williams conquer the town?"),
    ("What is written in C++?", "What is written in C#?"),
    ("What is written in C?", "What is written in C++?"),
    ("Where does Turkey come from?", "Where does turkey come from?"),
    ("What did the Treaty of Paris say?", "What did the treaty say?"),
    ("What did John Adams write?", "What did John Quincy Adams write?"),
    ("What is the climate of North Korea?", "What is the climate of Korea?"),
    ("What is hepatitis A?", "What is hepatitis B?"),
    ("What is hepatitis A?", "What is hepatitis?"),
    ("What did the US decide?", "What did us decide?"),
    # a number
    ("What happened in World War 1?", "What happened in World War 2?"),
    ("What happened in 1914 in Europe?", "What happened in 1941 in Europe?"),
    ("What is the second law of motion?", "What is the third law of motion?"),
    ("How do two magnets interact?", "How do three magnets interact?"),
    ("What is version 3.5 about?", "What is version 35 about?"),
    ("What happens at -5 degrees?", "What happens at 5 degrees?"),
    ("Who ruled under Henry IV of England?", "Who ruled under Henry VI of England?"),
    ("What costs $5 in Peru?", "What costs 5% in Peru?"),
    ("What is the law of motion?", "What is the 2nd law of motion?"),
    # a negation
    ("Which metals are magnetic?", "Which metals are not magnetic?"),
    ("Why is glass a crystal?", "Why isn't glass a crystal?"),
    ("What can dogs eat?", "What can't dogs eat?"),
    ("Which foods contain gluten?", "Which foods never contain gluten?"),
    ("How do plants grow with light?", "How do plants grow without light?"),
    ("Is the treaty constitutional?", "Is the treaty unconstitutional?"),
    ("What is living matter?", "What is non-living matter?"),
    ("Who has no vote?", "Who has a vote?"),
    # an order
    ("Which animals eat plants?", "Which plants eat animals?"),
    ("How do dogs differ from wolves when young?", "How do wolves differ from dogs when young?"),
    ("Did Rome conquer Carthage?", "Did Carthage conquer Rome?"),
    ("Does stress cause pain?", "Does pain cause stress?"),
    ("How is heat turned into work?", "How is work turned into heat?"),
    # what is asked
    ("What happened before the war?", "What happened after the war?"),
    ("Why did the war end?", "When did the war end?"),
    ("Who is the king?", "Who was the king?"),
    ("How did volcanoes erupt?", "How do volcanoes erupt?"),
    ("What is the universe made of?", "What is the university made of?"),
    ("What is an organ?", "What is an organization?"),
    ("What is the least efficient engine?", "What is the most efficient engine?"),
    ("What does he owe her?", "What does she owe him?"),
    ("What is the northern coast like?", "What is the southern coast like?"),
    ("What raises prices?", "What raises gas prices?"),
    ("What flows into the lake?", "What flows out of the lake?"),
    ("What are benefits of sleep?", "What are benefits of sleep for children?"),
)
