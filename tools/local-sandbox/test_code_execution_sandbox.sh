#!/usr/bin/env bash
# test_code_execution_sandbox.sh - does a server answer POST /execute as its clients expect?
#
# To add a test: test_code_execution NAME CODE STATUS [PATTERN], where PATTERN is found in what the program
# wrote; or test_request NAME BODY HTTP-STATUS PATTERN for a request as it is sent.
set -u

usage() {
	cat <<EOF
Usage: ${0##*/} [OPTION...]

Run test programs on a sandbox server and compare the answers. The exit status is 0 only
if all are as expected.

  -u, --url URL        where to send them (default: $url)
  -t, --timeout N      seconds each may take (default: $seconds)
  -m, --malformed      only requests that must be refused
  -h, --help           show this
EOF
}

url=http://${SANDBOX_HOST:-127.0.0.1}:${SANDBOX_PORT:-6000}/execute
seconds=30
only_malformed=
while [ $# -gt 0 ]; do
	case $1 in
	-u | --url) url=${2:?$1 needs a URL} && shift 2 ;;
	-t | --timeout) seconds=${2:?$1 needs a number} && shift 2 ;;
	-m | --malformed) only_malformed=1 && shift ;;
	-h | --help) usage && exit 0 ;;
	*) echo "${0##*/}: unknown option $1 (see --help)" >&2 && exit 2 ;;
	esac
done
for tool in curl python3; do
	command -v "$tool" >/dev/null || { echo "${0##*/}: $tool is not installed" >&2 && exit 2; }
done

passed=0 failed=0

report() { # NAME OK ANSWER
	if [ "$2" = yes ]; then
		passed=$((passed + 1))
		echo "ok    $1"
	else
		failed=$((failed + 1))
		printf 'FAIL  %s\n      %s\n' "$1" "$3"
	fi
}

# The answer, and its status on a line of its own.
post() { # BODY [CONTENT-TYPE]
	printf '%s' "$1" | curl -sS -m $((${seconds%.*} + 20)) -w '\n%{http_code}' -X POST \
		-H "Content-Type: ${2:-application/json}" --data-binary @- "$url" 2>&1
}

# One member of an answer; nothing where that is no JSON.
member() { # NAME ANSWER
	printf '%s' "$2" | python3 -c '
import json, sys
try:
    print(json.loads(sys.stdin.read().rpartition("\n")[0])[sys.argv[1]], end="")
except (ValueError, KeyError, TypeError):
    pass' "$1"
}

test_code_execution() { # NAME CODE STATUS [PATTERN]
	local body answer ok=no
	body=$(python3 -c '
import json, sys
print(json.dumps({"generated_code": sys.argv[1], "timeout": float(sys.argv[2]), "language": "python"}))' \
		"$2" "$seconds")
	answer=$(post "$body")
	if [ "${answer##*$'\n'}" = 200 ] && [ "$(member process_status "$answer")" = "$3" ] &&
		grep -qE -- "${4:-}" <<<"$(member stdout "$answer")$(member stderr "$answer")"; then
		ok=yes
	fi
	report "$1" "$ok" "$answer"
}

test_request() { # NAME BODY HTTP-STATUS PATTERN [CONTENT-TYPE]
	local answer ok=no
	answer=$(post "$2" "${5:-}")
	if [ "${answer##*$'\n'}" = "$3" ] && [ "$(member process_status "$answer")" = error ] &&
		grep -qE -- "$4" <<<"$(member stderr "$answer")"; then
		ok=yes
	fi
	report "$1" "$ok" "$answer"
}

programs() {
	test_code_execution "Simple print" 'print("Hello, World!")' completed '^Hello, World!'
	test_code_execution "Arithmetic" 'result = 2 + 3
print(f"Result: {result}")' completed 'Result: 5'
	test_code_execution "Numpy" 'import numpy as np
print("Mean:", np.mean(np.array([1, 2, 3, 4, 5])))' completed 'Mean: 3\.0'
	test_code_execution "Pandas" 'import pandas as pd
frame = pd.DataFrame({"A": [1, 2, 3], "B": [4, 5, 6]})
print("Sum:", frame["A"].sum())' completed 'Sum: 6'
	test_code_execution "Plotly" 'import plotly.graph_objects as go
figure = go.Figure(go.Scatter(x=[1, 2, 3], y=[4, 5, 6]))
print("Plot created")' completed 'Plot created'
	test_code_execution "Syntax error" 'print("Hello"' error 'SyntaxError'
	test_code_execution "Runtime error" 'print(1 / 0)' error 'ZeroDivisionError: division by zero'
	test_code_execution "Import error" 'import nonexistent_module' error 'ModuleNotFoundError'
	test_code_execution "Mixed output" 'import sys
print("to stdout")
print("to stderr", file=sys.stderr)' completed 'to stderr'
	test_code_execution "Long run" 'import time
for i in range(3):
    time.sleep(0.5)
print("Completed")' completed 'Completed'
	test_code_execution "Dictionary format" "{'generated_code': 'print(\"from a dict\")'}" completed \
		'from a dict'
	test_code_execution "Markdown format" '```python
print("from markdown")
```' completed 'from markdown'
	test_code_execution "File operations" 'import os
with open("test_file.txt", "w") as file:
    file.write("Hello")
print(open("test_file.txt").read())
os.remove("test_file.txt")
print(os.path.exists("test_file.txt"))' completed 'False'
	test_code_execution "Persistence: create" 'open("test_persistence.txt", "w").write("kept")' completed
	test_code_execution "Persistence: read" 'print(open("test_persistence.txt").read())' completed '^kept'
	test_code_execution "Persistence: JSON" 'import json, os
json.dump({"a": [1, 2]}, open("test_persistence.json", "w"))
print(json.load(open("test_persistence.json"))["a"])
os.remove("test_persistence.json")
os.remove("test_persistence.txt")' completed '\[1, 2\]'
}

malformed() {
	test_request "No generated_code" '{"timeout": 10, "language": "python"}' 400 \
		'^Missing required field: generated_code$'
	test_request "No timeout" '{"generated_code": "1", "language": "python"}' 400 \
		'^Missing required field: timeout$'
	test_request "No language" '{"generated_code": "1", "timeout": 10}' 400 \
		'^Missing required field: language$'
	test_request "Another language" '{"generated_code": "1", "timeout": 10, "language": "java"}' 400 \
		'^Only python execution is supported$'
	test_request "Broken JSON" '{"generated_code": "print("test")", "timeout": 10}' 400 \
		'^Invalid JSON data$'
	test_request "No JSON" 'This is not JSON' 400 '^Request must be JSON$' text/plain
}

echo "Testing $url"
[ -n "$only_malformed" ] || programs
malformed
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
