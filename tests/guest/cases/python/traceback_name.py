print(nmae)
name = 1
