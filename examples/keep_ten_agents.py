"""Keep all agents of a project alive until their work is done, and answer their questions.

rekindle trust FOLDER
python keep_ten_agents.py FOLDER
"""

import sys
import time

import rekindle

ANSWERS = {"waiting": "Take sqlite, and continue.", "budget": "stop"}
"""Answers by the reason of the question. All other questions are left to a person."""


def answer_questions(home: rekindle.Home) -> None:
    for question in home.questions():
        words, agent = ANSWERS.get(question.about), question.question.rpartition("-")[0]
        if words:
            print(f"{agent}: {question.text} → {words}")
            home.agent(agent).answer(words, question=question.question)


def keep_alive(home: rekindle.Home) -> bool:
    """Start the agents that are not running. Return whether there is work left."""
    rows = home.rows()
    for row in rows:
        if row.state == "stopped":
            print(f"{row.agent}: {home.agent(row.agent).start()}")
    return any(row.state != "done" for row in rows)


with rekindle.connect(sys.argv[1]) as home:
    while keep_alive(home):
        answer_questions(home)
        time.sleep(1)
