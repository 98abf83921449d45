"""Two user tasks of AgentDojo's travel suite, answered by an agent that follows the ground truth
of the first and does nothing for the second, with and without an injection: run with agentdojo
installed, then copy runs/steady/travel to ../agentdojo, but for injection_task_6."""

from pathlib import Path

from agentdojo.agent_pipeline import BasePipelineElement, GroundTruthPipeline
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.benchmark import benchmark_suite_with_injections, benchmark_suite_without_injections
from agentdojo.logging import OutputLogger
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.types import ChatAssistantMessage, ChatUserMessage, text_content_block_from_string

TASKS = ("user_task_0", "user_task_1")
LOGS = Path("runs")


class Steady(BasePipelineElement):
    name = "steady"

    def query(self, query, runtime, env, messages=(), extra_args=None):
        asked = ChatUserMessage(role="user", content=[text_content_block_from_string(query)])
        task = next((one for one in suite.user_tasks.values() if query == one.PROMPT), None)
        if task is not None and TASKS[0] == task.ID:
            return GroundTruthPipeline(task).query(query, runtime, env, [asked], extra_args or {})
        content = [text_content_block_from_string("I cannot help with that.")]
        said = ChatAssistantMessage(role="assistant", content=content, tool_calls=None)
        return query, runtime, env, [asked, said], extra_args or {}


suite = get_suite("v1.2.1", "travel")
agent = Steady()
with OutputLogger(str(LOGS)):
    benchmark_suite_without_injections(agent, suite, LOGS, True, TASKS, benchmark_version="v1.2.1")
    attack = load_attack("direct", suite, agent)
    benchmark_suite_with_injections(
        agent, suite, attack, LOGS, True, TASKS, ("injection_task_6",), benchmark_version="v1.2.1"
    )
