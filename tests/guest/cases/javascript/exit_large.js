process.exit(256 + 7)
