# Files that only tuples and dicts hold, which the collector has stopped to follow.
import gc

held = ({"file": open("one", "w")},)
held[0]["file"].write("in a dict in a tuple\n")
names = {"file": open("two", "w")}
names["file"].write("in a dict\n")
gc.collect()
