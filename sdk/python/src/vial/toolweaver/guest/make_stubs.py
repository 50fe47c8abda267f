# Runs in the sandbox, before any code: see stubs.py.
def make_stubs(tools, names):
    import sys
    import types

    def module(name):
        if name not in sys.modules:
            made = sys.modules[name] = types.ModuleType(name)
            made.__path__ = []
            above, _, leaf = name.rpartition(".")
            if above:
                setattr(module(above), leaf, made)
        return sys.modules[name]

    class Model:
        fields, required = (), ()

        def __init__(self, **values):
            missing = [name for name in self.required if name not in values]
            if missing:
                raise ValueError("%s: Missing required parameters: %s"
                                 % (type(self).__name__, missing))
            # Of a tool that does not say what it takes, all that is given.
            self.__dict__.update((name, value) for name, value in values.items()
                                 if name in self.fields or not self.fields)

        def __getattr__(self, name):
            if name in self.fields:
                return None
            raise AttributeError(name)

        def model_dump(self):
            return dict(self.__dict__)

        def __repr__(self):
            told = ", ".join("%s=%r" % item for item in self.__dict__.items())
            return "%s(%s)" % (type(self).__name__, told)

    class Output(Model):
        fields = ("result", "success", "error")

    def stub(tool, output):
        async def call(input_data):
            try:
                value = names[tool["call"]](**input_data.model_dump())
                if hasattr(value, "__await__"):
                    value = await value
                return output(result=value, success=True)
            except Exception as why:
                return output(success=False, error=str(why))
        call.__name__ = call.__qualname__ = tool["name"]
        call.__doc__ = tool["description"]
        return call

    for tool in tools:
        title = "".join(part.title() for part in tool["name"].split("_"))
        given = type(title + "Input", (Model,), {key: tool[key] for key in ("fields", "required")})
        output = type(title + "Output", (Output,), {})
        made = {tool["name"]: stub(tool, output), given.__name__: given, output.__name__: output}
        domain = "tools." + tool["domain"]
        module("%s.%s" % (domain, tool["name"])).__dict__.update(made)
        module(domain).__dict__.update(made)  # where the function hides the module of its name
