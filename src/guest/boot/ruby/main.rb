# A rehearsal: what any program does, so that the memory it takes is known (src/guest/pages.h).
def greet(name)
  "hello, #{name}"
end

puts greet("you")
