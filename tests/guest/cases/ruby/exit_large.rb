exit(256 + 7)
