p gets, $stdin.gets, $., STDIN.read(4), readlines
p gets
