#!/usr/bin/env bash
# curl_request.sh [URL] - a plotly figure over POST /execute, as an example of a request.
set -eu
url=${1:-http://${SANDBOX_HOST:-127.0.0.1}:${SANDBOX_PORT:-6000}/execute}

curl -sS -X POST -H 'Content-Type: application/json' --data @- "$url" <<'EOF'
{
  "generated_code": "import plotly.graph_objects as go\nfigure = go.Figure(go.Scatter(x=[1, 2, 3], y=[4, 5, 6]))\nprint(figure.to_json())",
  "timeout": 60,
  "language": "python"
}
EOF
