# Causes, contexts, notes and groups in one traceback.
class ConfigError(Exception):
    pass


def load(text):
    try:
        return int(text)
    except ValueError as error:
        failure = ConfigError("not a port number")
        failure.add_note("the port is what the server listens on")
        raise failure from error


try:
    raise ExceptionGroup("two of them", [KeyError("missing"), OSError(2, "gone")])
except* KeyError as group:
    print("caught", group.exceptions)
except* OSError as group:
    print("caught", group.exceptions)
load("eighty")
