warn 'one'
warn 'two', uplevel: 0
$VERBOSE = true
A = 1
A = 2
