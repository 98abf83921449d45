"""Results of promptfoo of which three were rated by hand, as its page does it, in JSON and CSV.

In an empty folder, with `promptfoo` installed: python promptfoo_rated_sample.py .../rated
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PORT = "15591"
AGENT = """
let calls = 0;
module.exports = class {
  id() { return 'made-up'; }
  async callApi() { calls += 1; return { output: calls % 3 ? 'Within 30 days.' : 'No idea.' }; }
};
"""
CONFIG = """
prompts: ["{{question}}"]
providers: ["file://agent.js"]
tests:
  - description: shoes
    vars: {question: Can I return my shoes?}
    assert: [{type: contains, value: days}, {type: contains, value: "30"}]
  - description: lamp
    vars: {question: May I bring the lamp back?}
    threshold: 0.5
    assert: [{type: contains, value: days}, {type: contains, value: Within, weight: 3}]
  - description: book
    vars: {question: Do you take the book back?}
    assert: [{type: contains, value: weeks}]
"""
MANUAL = "Manual result (overrides all other grading results)"


def promptfoo(*arguments):
    return subprocess.Popen(["promptfoo", *arguments])


def main():
    folder, home = Path(sys.argv[1]), str(Path("home").absolute())
    os.environ |= {"PROMPTFOO_CONFIG_DIR": home, "PROMPTFOO_DISABLE_TELEMETRY": "1"}
    Path("agent.js").write_text(AGENT)
    Path("promptfooconfig.yaml").write_text(CONFIG)
    promptfoo("eval", "--no-cache", "--repeat", "2", "-j", "1", "-o", "before.json").wait()
    done = json.loads(Path("before.json").read_text())
    server = promptfoo("view", "-n", "-p", PORT)
    try:
        time.sleep(15)
        results = done["results"]["results"]
        for place, passed, comment in ((0, False, "no receipt"), (2, True, ""), (5, True, "fine")):
            rate(done["evalId"], results[place], passed, comment)
    finally:
        server.terminate()
    for ending in ("json", "csv"):
        file = folder / f"promptfoo.{ending}"
        promptfoo("export", "eval", done["evalId"], "-o", str(file)).wait()


def rate(evaluation, result, passed, comment):
    """What the page sends when somebody presses thumbs up or down."""
    grading, score = result["gradingResult"], int(passed)
    said = {"pass": passed, "score": score, "reason": MANUAL, "comment": comment}
    components = [*grading["componentResults"], {**said, "assertion": {"type": "human"}}]
    request = urllib.request.Request(
        f"http://localhost:{PORT}/api/eval/{evaluation}/results/{result['id']}/rating",
        data=json.dumps({**grading, **said, "componentResults": components}).encode(),
        headers={"content-type": "application/json"},
    )
    urllib.request.urlopen(request)


main()
