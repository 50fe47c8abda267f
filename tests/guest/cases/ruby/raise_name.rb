class Foo
  def bar = 1
end
Foo.new.baz
