# encoding: iso-8859-1
p __ENCODING__, DATA.external_encoding, 'x'.encoding, DATA.read
__END__
more
