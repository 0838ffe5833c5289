"""Ask one question per agent with parallem. A script: JSON on stdin, JSON on stdout.

Only what the library's own documentation shows belongs here; keys and addresses come from the
environment. With the strategy `batch` the first run submits, and a later one has the answers.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Read `directory`, `strategy`, `model`, `prompts` (list); print the answers there are."""
    import parallem

    job = json.load(sys.stdin)
    answers: list[str | None] = []
    with parallem.resume_directory(
        job["directory"],
        provider="openai",
        strategy=job["strategy"],
        llm=job["model"],
        tweaks={"batch_user_confirmation": False},
    ) as orchestrator:
        for number, prompt in enumerate(job["prompts"]):
            with orchestrator.agent(f"agent-{number}") as agent:
                answers.append(agent.ask_llm(prompt).final_answer)
    print(json.dumps({"answers": answers}))


if __name__ == "__main__":
    main()
