import helper
helper.go()
