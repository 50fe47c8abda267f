# Classes, modules, refinements, structs, comparable, method_missing, freezing.
module Greeter
  def greet = "I am #{name}"
end

class Animal
  include Comparable
  include Greeter
  attr_reader :name, :weight

  def initialize(name, weight)
    @name, @weight = name, weight
  end

  def <=>(other) = weight <=> other.weight
  def to_s = "#{self.class}(#{name})"
  def method_missing(method, *args) = method.end_with?("?") ? "#{name} wonders #{method}" : super
  def respond_to_missing?(method, all = false) = method.end_with?("?") || super
end

class Dog < Animal
  def greet = super + ", woof"
end

module Shout
  refine(String) { def shout = upcase + "!" }
end
using Shout

Point = Struct.new(:x, :y, keyword_init: true) do
  def +(other) = Point.new(x: x + other.x, y: y + other.y)
end
animals = [Dog.new("Rex", 30), Animal.new("Tom", 5)]
puts animals.min, animals.map(&:greet), Dog.ancestors.take(3).inspect, animals[0].hungry?, "hey".shout
p Point.new(x: 1, y: 2) + Point.new(x: 3, y: 4), Point.new(x: 1, y: 2) == Point.new(x: 1, y: 2)
begin
  animals[0].fly
rescue NoMethodError => e
  puts e.message[/undefined method `fly'/]
end
begin
  "frozen".freeze << "x"
rescue FrozenError => e
  puts e.message
end
p defined?(foo), Dog.instance_methods(false), animals[0].respond_to?(:sad?), ObjectSpace.respond_to?(:each_object)
klass = Class.new { define_method(:dynamic) { |x = 2| x * 21 } }
p klass.new.dynamic, klass.new.public_send(:dynamic, 1), Integer === 3, Dog.new("a", 1).between?(animals[1], animals[0])
at_exit { puts "goodbye" }
catch(:done) { 10.times { |i| throw :done if i == 3 }; puts "never" }
p (begin; Integer("x"); rescue ArgumentError => e; e.message; else; 1; ensure; puts "ensured"; end)
