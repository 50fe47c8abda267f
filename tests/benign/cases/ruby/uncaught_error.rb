# An exception that nobody rescues, with its cause.
class Missing < StandardError; end

def lookup(key)
  { a: 1 }.fetch(key)
rescue KeyError
  raise Missing, "nothing under #{key}"
end

puts lookup(:a)
lookup(:b)
