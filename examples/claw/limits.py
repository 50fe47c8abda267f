"""Limits of one execution, and of all."""
from vial.claw import CodeSandbox, ResourceLimits

sandbox = CodeSandbox()
limits = ResourceLimits(
    memory_limit="256m",
    timeout_seconds=10,
    cpu_quota=100000,
)
print(sandbox.execute("print(1)", "python", limits=limits).success)

# Maximum security configuration
limits = ResourceLimits(
    memory_limit="256m",
    timeout_seconds=10,
    cpu_quota=50000,
    pids_limit=25,
)
sandbox = CodeSandbox(default_limits=limits)
result = sandbox.execute(
    "open('/sandbox/file', 'w')",
    language="python",
    network_enabled=False,
    read_only=True,
)
print(result.success, result.exit_code)

# Lightweight configuration for quick tasks
sandbox = CodeSandbox(default_limits=ResourceLimits(memory_limit="128m", timeout_seconds=5,
                                                    cpu_quota=50000, pids_limit=25))
for code_snippet in ("print(1)", "print(2)"):
    print(sandbox.execute(code_snippet, "python").stdout, end="")
# prints:
# True
# False 1
# 1
# 2
