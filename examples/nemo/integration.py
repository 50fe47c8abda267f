"""A server spoken to without any SDK.  SANDBOX_URL: where it is."""
import os

import requests

URL = os.environ.get("SANDBOX_URL", "http://localhost:6000") + "/execute"


def execute_code(code, timeout=30):
    payload = {
        "generated_code": code,
        "timeout": timeout,
        "language": "python",
    }
    response = requests.post(
        URL,
        json=payload,
        headers={"Content-Type": "application/json"},
        timeout=timeout + 10,
    )
    return response.json()


result = execute_code("print('Hello from Python!')")
print(f"Status: {result['process_status']}")
print(f"Output: {result['stdout']}", end="")
# prints:
# Status: completed
# Output: Hello from Python!
