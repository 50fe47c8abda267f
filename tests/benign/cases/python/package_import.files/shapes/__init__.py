from .circle import Circle


def area_of(shape):
    return round(shape.area(), 6)
