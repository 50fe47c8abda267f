"""Programs that call tools: only what they print and return goes back to the model."""
import asyncio

from vial.toolweaver import ProgrammaticToolExecutor, ToolCatalog, ToolDefinition, ToolParameter


async def get_team(name):
    return [{"id": 1, "name": "Alice"}, {"id": 2, "name": "Bob"}]


def get_expenses(member):
    return {1: [9000, 2000], 2: [100]}[member]


async def main():
    catalog = ToolCatalog(source="example")
    catalog.add_tool(ToolDefinition("get_team", get_team, domain="people", parameters=[
        ToolParameter("name", required=True)]))
    catalog.add_tool(ToolDefinition("get_expenses", get_expenses, domain="finance", parameters=[
        ToolParameter("member", type="integer", required=True)]))
    executor = ProgrammaticToolExecutor(catalog)

    result = await executor.execute("""
team = await get_team(name=department)
spent = await asyncio.gather(*[get_expenses(member=m["id"]) for m in team])
print(json.dumps([m["name"] for m, costs in zip(team, spent) if sum(costs) > 10000]))
""", {"department": "engineering"})
    print(result["output"], end="")
    print(len(result["tool_calls"]), "calls")

    # The same tools as modules, which a model can find its way in.
    print(executor.get_tools_directory_tree())
    result = await executor.execute("""
from tools.finance import get_expenses, GetExpensesInput
answer = await get_expenses(GetExpensesInput(member=2))
return answer.result
""")
    print(result["result"])
    await executor.sandbox.aclose()


asyncio.run(main())
# prints:
# ["Alice"]
# 3 calls
# tools/
#   finance/
#     get_expenses.py
#   people/
#     get_team.py
# [100]
