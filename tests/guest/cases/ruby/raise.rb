def f(x)
  1 / x
rescue ZeroDivisionError => e
  raise ArgumentError, 'no'
end
f(0)
