"""Example 3, and how results go to a debugger, a learner, a reviewer."""
from vial.claw import AutoDebuggerIntegration, CodeSandbox

sandbox = CodeSandbox()
result = sandbox.execute("raise ValueError('Test error')", "python")

analysis = AutoDebuggerIntegration.analyze_error(result)
print(f"Error type: {analysis['error_type']}")
print(f"Is error: {analysis['is_error']}")

debug_report = AutoDebuggerIntegration.create_debug_report(result)
print(debug_report["status"], debug_report["exit_code"])

record = {True: [], False: []}
for code in ("print('fine')", "1/0"):
    result = sandbox.execute(code, "python")
    record[result.success].append(result.stdout or result.stderr.splitlines()[-1])
print(record)
print([entry["success"] for entry in sandbox.get_execution_history()])
# prints:
# Error type: python_exception
# Is error: True
# failure 1
# {True: ['fine\n'], False: ['ZeroDivisionError: division by zero']}
# [False, True, False]
