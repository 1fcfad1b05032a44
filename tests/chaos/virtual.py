"""Schedules in virtual time: tests/simulation/chaos-virtual plays them."""
import concurrent.futures
import re
import subprocess

CHUNK = 50
NUMBERS = 5  # looks, at hard claims in peace, at users' claims, at locked clocks; deaths of the daemon


class Virtual:
    def __init__(self, program):
        self.program = program

    def play_all(self, schedules):
        """[(schedule, what broke or "", numbers)]; a player that dies breaks the next one."""
        text = "".join(s.text() for s in schedules)
        p = subprocess.run([self.program], input=text, capture_output=True, text=True, timeout=3600, check=False)
        told = [line.split(" ", 2) for line in p.stdout.splitlines() if re.match(r"(ok|bad) \d", line)]
        played = [(s, rest if word == "bad" else "", [int(n) for n in rest.split()] if word == "ok" else [0] * NUMBERS)
                  for s, (word, _, rest) in zip(schedules, told)]
        if len(played) == len(schedules):
            return played
        why = f"chaos-virtual ended with {p.returncode}: {p.stderr.strip()[-2000:]}"
        at = len(played)
        return [*played, (schedules[at], why, [0] * NUMBERS), *(self.play_all(schedules[at + 1:]) if schedules[at + 1:] else [])]

    def play(self, schedule):
        return self.play_all([schedule])[0][1]

    def chunks(self, schedules, jobs):
        """play_all() of all of them, side by side, as they come; schedules: any iterable."""
        waiting, chunk = set(), []
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for s in schedules:
                chunk.append(s)
                if len(chunk) == CHUNK:
                    waiting.add(pool.submit(self.play_all, chunk))
                    chunk = []
                if len(waiting) >= 2 * jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
                    for d in done:
                        yield from d.result()
            if chunk:
                waiting.add(pool.submit(self.play_all, chunk))
            for d in concurrent.futures.as_completed(waiting):
                yield from d.result()
