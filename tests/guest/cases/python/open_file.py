# A file that nobody closes is written when the program ends.
kept = [open("written", "w")]
kept[0].write("late")
