x = nil
x.foo.bar
