ObjectSpace.define_finalizer('x'.dup, proc { puts 'finalized' })
GC.start
f = File.open('data.txt', 'w'); f.write('data')
$g = File.open('kept.txt', 'w'); $g.write('kept')
puts 'end'
