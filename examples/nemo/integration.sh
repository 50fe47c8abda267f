#!/usr/bin/env bash
# A server spoken to by curl and jq.  SANDBOX_URL: where it is.

execute_python_code() {
	local code="$1"
	local timeout="${2:-30}"

	curl -s -X POST \
		-H "Content-Type: application/json" \
		-d "{\"generated_code\": $(printf '%s' "$code" | jq -R -s .), \"timeout\": $timeout, \"language\": \"python\"}" \
		"${SANDBOX_URL:-http://localhost:6000}/execute"
}

result=$(execute_python_code "import numpy as np; print(np.version.version.split('.')[0].isdigit())")
echo "$result" | jq -r '.stdout'
# prints:
# True
