"""What has been executed, what it used, and code that is reviewed before."""
from vial.claw import CodeSandbox


class Scanner:
    """A reviewer of code."""

    def is_safe(self, code):
        return "rm -rf" not in code


security_scanner = Scanner()
sandbox = CodeSandbox()
for code in ("print('one')", "import os; os.system('rm -rf /')", "raise SystemExit(2)"):
    if security_scanner.is_safe(code):
        result = sandbox.execute(code, "python")

history = sandbox.get_execution_history()
print([(entry["success"], entry["exit_code"]) for entry in history])
print(len(sandbox.get_execution_history(limit=1)))
stats = sandbox.get_resource_usage(history[-1]["container_id"])
print(stats["memory_usage"] > 0, stats["cpu_percent"] >= 0)
print(sandbox.get_resource_usage("not one of ours"))
sandbox.cleanup_all_containers()
# prints:
# [(True, 0), (False, 2)]
# 1
# True True
# None
