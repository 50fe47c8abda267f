mine = 'the one beside'
