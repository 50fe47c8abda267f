p DATA.read, DATA.class, DATA.path, DATA.lineno, DATA.pos, DATA.fileno
p __LINE__
DATA.rewind
puts DATA.read
__END__
the data
section
