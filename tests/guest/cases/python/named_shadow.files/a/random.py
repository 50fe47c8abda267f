mine = 'beside the program'
