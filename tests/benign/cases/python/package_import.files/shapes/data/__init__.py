from importlib import resources


def load():
    return resources.files(__name__).joinpath("colours.txt").read_text().split()
