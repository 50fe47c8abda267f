class A
  def b
