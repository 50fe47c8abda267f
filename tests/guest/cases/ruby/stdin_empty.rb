p gets, $stdin.read, $stdin.eof?
readline
