"""LangChain: a model that asks for tools, messages that carry what they said."""
import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langchain_core.tools import BaseTool, ToolException  # noqa: E402

from vial.codemie import CodeExecutorTool, DirectoryFileRepository  # noqa: E402
from vial.codemie import ToolException as Ours  # noqa: E402


def ask(code, number, **more):
    return AIMessage("", tool_calls=[{"name": "code_executor", "args": {"code": code, **more},
                                      "id": str(number), "type": "tool_call"}])


@pytest.fixture
def tool(tmp_path):
    made = CodeExecutorTool(DirectoryFileRepository(str(tmp_path)), "chain").as_langchain_tool()
    assert isinstance(made, BaseTool) and made.name == "code_executor"
    return made


def run(model, tool):
    """What an agent does: until the model asks for no more."""
    messages = [HumanMessage("How many?")]
    while True:
        said = model.invoke(messages)
        messages.append(said)
        if not said.tool_calls:
            return messages
        messages += [tool.invoke(call) for call in said.tool_calls]


def test_an_agent(tool):
    model = FakeMessagesListChatModel(responses=[
        ask("print(sum(range(10)))", 1), ask("open('a.csv', 'w').write('x')\nprint('made')", 2, export_files=["a.csv"]),
        ask("1/0", 3), ask("import os", 4), AIMessage("45")])
    messages = run(model, tool)
    told = [message for message in messages if isinstance(message, ToolMessage)]
    assert [message.tool_call_id for message in told] == ["1", "2", "3", "4"]
    assert told[0].content == "45"
    assert told[1].content.startswith("made\nFile 'a.csv': sandbox:")
    assert told[2].content.startswith("Code execution failed.") and "ZeroDivisionError" in told[2].content
    assert told[3].content.startswith("Code failed security validation")
    assert told[2].status == "error" and messages[-1].content == "45"


def test_its_own_exception():
    assert Ours is ToolException
    with pytest.raises(ToolException):
        CodeExecutorTool().execute("1/0")


def test_the_schema_that_models_see(tool):
    assert set(tool.args) == {"code", "export_files"}
