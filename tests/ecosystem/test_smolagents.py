"""smolagents: an agent that writes code, and one that calls tools."""
import pytest

smolagents = pytest.importorskip("smolagents")

from executor import VialExecutor  # noqa: E402
from smolagents import CodeAgent, Model, Tool, ToolCallingAgent, tool  # noqa: E402
from smolagents.models import (  # noqa: E402
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

from vial.codemie import CodeExecutorTool  # noqa: E402


class Script(Model):
    """A model that has decided what to say."""

    def __init__(self, *said):
        super().__init__(model_id="script")
        self.said = list(said)
        self.heard = []

    def generate(self, messages, **kwargs):
        self.heard.append(str(messages[-1].content))
        said = self.said.pop(0)
        return said if isinstance(said, ChatMessage) else ChatMessage(MessageRole.ASSISTANT, said)


def code(text):
    return "Thought: so be it.\n<code>\n%s\n</code>" % text


@tool
def price(item: str) -> int:
    """What something costs.

    Args:
        item: what it is
    """
    return {"tea": 3}[item]


def test_code_that_an_agent_writes(sandbox):
    model = Script(code("x = price('tea')\nprint('it is', x)"), code("1 / 0"),
                   code("import os\nfinal_answer([x * 2, os.path.exists('/etc/shadow')])"))
    with VialExecutor(sandbox) as executor:
        agent = CodeAgent(tools=[price], model=model, executor=executor, max_steps=5, verbosity_level=0)
        assert agent.run("What do two teas cost?") == [6, False]
    assert "it is 3" in model.heard[1]
    assert "division by zero" in model.heard[2]


def test_a_tool_that_an_agent_calls():
    pytest.importorskip("langchain_core")
    theirs = Tool.from_langchain(CodeExecutorTool(user_id="smol").as_langchain_tool())

    def call(name, **arguments):
        return ChatMessage(MessageRole.ASSISTANT, "", [ChatMessageToolCall(
            ChatMessageToolCallFunction(arguments, name), "1", "function")])
    model = Script(call("code_executor", code="print(6 * 7)"), call("final_answer", answer="42"))
    agent = ToolCallingAgent(tools=[theirs], model=model, max_steps=3, verbosity_level=0)
    assert agent.run("What is 6 times 7?") == "42"
    assert "42" in model.heard[1]
