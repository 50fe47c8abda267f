"""smolagents' CodeAgent with its code in a sandbox: `CodeAgent(..., executor=VialExecutor())`.

Tools run here, in the agent's process; the code that calls them runs there, and keeps its
variables between steps.
"""
from smolagents.local_python_executor import CodeOutput, PythonExecutor

import vial


class VialExecutor(PythonExecutor):
    """A session of its own.  Close it, or use it in a `with` block.

    Args:
        sandbox: the vial.Sandbox to use. Default: that of this process.
        options: of its session: environment, timeout, limits...
    """

    def __init__(self, sandbox=None, **options):
        self.session = (sandbox or vial.default()).session(**options)
        self.tools = {}
        self.answers = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.cleanup()

    def cleanup(self):
        self.session.close()

    def send_variables(self, variables):
        if variables:
            self.session.run("pass", globals=variables)

    def send_tools(self, tools):
        self.tools = {name: tool for name, tool in tools.items() if name != "final_answer"}

    def _final_answer(self, answer=None):
        self.answers.append(answer)
        return answer

    def __call__(self, code_action):
        self.answers.clear()
        result = self.session.run(code_action,
                                  callbacks={**self.tools, "final_answer": self._final_answer})
        if not result.ok:
            result.check()
        is_final = bool(self.answers)
        return CodeOutput(output=self.answers[-1] if is_final else result.value,
                          logs=result.stdout + result.stderr, is_final_answer=is_final)
