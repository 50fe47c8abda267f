TracePoint.new(:call) { |t| puts t.method_id if t.path == __FILE__ }.enable
def f = 1
f
