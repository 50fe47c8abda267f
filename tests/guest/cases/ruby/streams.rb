[$stdin, $stdout, $stderr].each do |s|
  p s, s.fileno, s.sync, s.tty?, s.external_encoding, s.internal_encoding, s.lineno, s.class, s.close_on_exec?, s.binmode?
  p((s.pos rescue $!.class), s.stat.pipe?)
end
p STDIN.equal?($stdin), STDOUT.equal?($stdout), STDERR.equal?($stderr), $>.equal?($stdout)
