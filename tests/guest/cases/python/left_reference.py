# Somebody waits for the end of another.
import weakref


class Box:
    pass


box = Box()
waits = weakref.ref(box, lambda _: print("gone"))
