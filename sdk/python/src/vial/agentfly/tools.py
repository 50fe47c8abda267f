"""tools - the interpreter as a tool of an agent, and as a judge of its code."""
from __future__ import annotations

import traceback
from typing import Any, Dict, Optional

from .env import PythonSandboxEnv


async def code_interpreter(code: Any, env: Optional[PythonSandboxEnv] = None) -> str:
    """Run the code in Python, and return what it prints, or its error.

    Args:
        code: what to run.
        env: where. Default: an environment for this call alone.
    """
    try:
        if env is not None:
            return await env.step(str(code))
        async with PythonSandboxEnv() as fresh:
            return await fresh.step(str(code))
    except Exception as why:
        return "Error: %s\n%s" % (why, traceback.format_exc())


async def code_reward(prediction: str, env: Optional[PythonSandboxEnv] = None, **kwargs: Any
                      ) -> Dict[str, Any]:
    """1.0 for code that runs, 0.0 for code that fails; and the output, or the error."""
    try:
        if env is not None:
            seen = await env.observe(prediction)
        else:
            async with PythonSandboxEnv() as fresh:
                seen = await fresh.observe(prediction)
    except Exception as why:
        return {"reward": 0.0, "output": str(why)}
    return {"reward": 0.0 if seen.is_error else 1.0, "output": seen.text}
