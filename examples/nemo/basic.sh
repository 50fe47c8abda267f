#!/usr/bin/env bash
# A program in each of the three forms, by curl.  SANDBOX_URL: where the server is.

execute() {
	curl -s -X POST \
		-H "Content-Type: application/json" \
		-d "$1" \
		"${SANDBOX_URL:-http://localhost:6000}/execute"
}

execute '{
  "generated_code": "print(\"Hello, World!\")",
  "timeout": 30,
  "language": "python"
}'

# Raw Python code
execute '{
  "generated_code": "import numpy as np\nprint(np.array([1, 2, 3]))",
  "timeout": 30,
  "language": "python"
}'

# Dictionary format
execute '{
  "generated_code": "{'\''generated_code'\'': '\''print(\"Hello from dict format\")'\''}",
  "timeout": 30,
  "language": "python"
}'

# Markdown code blocks
execute '{
  "generated_code": "```python\nprint('\''Hello from markdown'\'')\n```",
  "timeout": 30,
  "language": "python"
}'
# prints:
# {"process_status":"completed","stdout":"Hello, World!\n","stderr":""}
# {"process_status":"completed","stdout":"[1 2 3]\n","stderr":""}
# {"process_status":"completed","stdout":"Hello from dict format\n","stderr":""}
# {"process_status":"completed","stdout":"Hello from markdown\n","stderr":""}
