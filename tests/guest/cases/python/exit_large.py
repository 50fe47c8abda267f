raise SystemExit(256 + 7)
