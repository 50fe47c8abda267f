r = Ractor.new { 1 + 2 }
p r.take
