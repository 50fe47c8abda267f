x = 1
def f(
  1 +
end
