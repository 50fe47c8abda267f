# compile, exec, eval, ast, dis, inspect, symtable: programs about programs.
import ast
import dis
import inspect
import sys
import types


class Fold(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            code = compile(ast.Expression(node), "<fold>", "eval")
            return ast.copy_location(ast.Constant(eval(code)), node)
        return node


def add(a, b: int = 2, *rest, key="k", **more) -> int:
    return a + b


tree = ast.parse("x = (2 + 3) * 4 - y")
print(ast.unparse(Fold().visit(tree)))
scope = {"y": 1}
exec(compile(ast.fix_missing_locations(tree), "<made>", "exec"), scope)
print(scope["x"], eval("[n * n for n in range(5)]"), ast.literal_eval("{'a': (1, None)}"))
print(inspect.signature(add), [i.opname for i in dis.get_instructions("a + 1")][-1])
module = types.ModuleType("made")
exec("def hello(): return __name__", module.__dict__)
sys.modules["made"] = module
from made import hello  # noqa: E402

print(hello(), type("Dynamic", (), {"x": 5})().x)
events = []
sys.settrace(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))
add(1)
sys.settrace(None)
print(events)
try:
    exec("def f():\n  return +\n")
except SyntaxError as error:
    print(error.msg, error.lineno)
print(sys.getrefcount(object()) >= 1, sys.getsizeof([]) > 0, inspect.getsource(add).splitlines()[0])
