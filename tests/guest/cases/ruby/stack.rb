def f; puts caller, caller_locations.map(&:inspect); p __method__; end
f
p caller, binding.source_location, Thread.current.backtrace
