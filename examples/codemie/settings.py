"""Settings by variables: the defaults, local development, production, and as containers have them."""
import os
from unittest import mock

from vial.codemie import CodeExecutorConfig, CodeExecutorTool


def configured(**settings):
    variables = {"CODE_EXECUTOR_" + name: value for name, value in settings.items()}
    with mock.patch.dict(os.environ, variables):
        return CodeExecutorConfig.from_env()


config = configured()
print(config.workdir_base, config.namespace, config.docker_image)
print(config.execution_timeout, config.session_timeout, config.default_timeout)
print(config.memory_limit, config.memory_request, config.cpu_limit, config.cpu_request)
print(config.max_pod_pool_size, config.pod_name_prefix, config.run_as_user, config.verbose)

# Local Development
config = configured(NAMESPACE="dev-runtime", EXECUTION_TIMEOUT="60", VERBOSE="true")
print(config.namespace, config.execution_timeout, config.verbose)
print(CodeExecutorTool(config=config).execute("print('in development')"))

# Production (In-Cluster)
config = configured(MEMORY_LIMIT="512Mi", CPU_LIMIT="2", EXECUTION_TIMEOUT="120",
                    MAX_POD_POOL_SIZE="10", POD_NAME_PREFIX="prod-executor-")
print(config.memory_limit, config.cpu_limit, config.max_pod_pool_size, config.pod_name_prefix)
print(CodeExecutorTool(config=config).execute("print('in production')"))

# Docker Compose
config = configured(NAMESPACE="docker-runtime", EXECUTION_TIMEOUT="45", MEMORY_LIMIT="256Mi")
print(config.namespace, config.execution_timeout, config.memory_limit)

# Kubernetes Deployment
config = configured(NAMESPACE="production-runtime", EXECUTION_TIMEOUT="120", MEMORY_LIMIT="512Mi",
                    CPU_LIMIT="2", MAX_POD_POOL_SIZE="10", POD_NAME_PREFIX="prod-exec-")
print(config.namespace, config.cpu_limit, config.pod_name_prefix)
# prints:
# /home/codemie codemie-runtime epamairun/codemie-python:2.2.9
# 30.0 300.0 30.0
# 128Mi 128Mi 1 500m
# 5 codemie-executor- 1001 True
# dev-runtime 60.0 True
# in development
# 512Mi 2 10 prod-executor-
# in production
# docker-runtime 45.0 256Mi
# production-runtime 2 prod-exec-
