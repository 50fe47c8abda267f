mine = 'a package beside'
