"""Settings by variables: for local development, then for production."""
import os
from unittest import mock

from vial.codemie import CodeExecutorConfig, CodeExecutorTool

with mock.patch.dict(os.environ, {"CODE_EXECUTOR_NAMESPACE": "dev-runtime",
                                  "CODE_EXECUTOR_EXECUTION_TIMEOUT": "60",
                                  "CODE_EXECUTOR_VERBOSE": "true"}):
    config = CodeExecutorConfig.from_env()
    print(config.namespace, config.execution_timeout, config.verbose)
    print(CodeExecutorTool(config=config).execute("print('in development')"))

with mock.patch.dict(os.environ, {"CODE_EXECUTOR_MEMORY_LIMIT": "512Mi",
                                  "CODE_EXECUTOR_CPU_LIMIT": "2",
                                  "CODE_EXECUTOR_EXECUTION_TIMEOUT": "120",
                                  "CODE_EXECUTOR_MAX_POD_POOL_SIZE": "10",
                                  "CODE_EXECUTOR_POD_NAME_PREFIX": "prod-executor-"}):
    config = CodeExecutorConfig.from_env()
    print(config.memory_limit, config.cpu_limit, config.max_pod_pool_size, config.pod_name_prefix)
    print(CodeExecutorTool(config=config).execute("print('in production')"))
# prints:
# dev-runtime 60.0 True
# in development
# 512Mi 2 10 prod-executor-
# in production
