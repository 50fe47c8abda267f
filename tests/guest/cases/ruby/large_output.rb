20000.times { |i| puts i }
