$stdout.sync = false
print 'no newline'
