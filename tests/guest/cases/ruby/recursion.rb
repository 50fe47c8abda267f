$d = 0
def f; $d += 1; f; end
begin; f; rescue SystemStackError => e; p e.class, e.message, $d > 1000; end
