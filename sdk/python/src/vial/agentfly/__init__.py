"""agentfly - AgentFly's PythonSandboxEnv, its tool and its reward.

    from vial.agentfly import PythonSandboxEnv   # was: agents.envs.python_env
"""
from .env import PythonSandboxEnv
from .pool import EnvironmentPool
from .tools import code_interpreter, code_reward

__all__ = ["EnvironmentPool", "PythonSandboxEnv", "code_interpreter", "code_reward"]
