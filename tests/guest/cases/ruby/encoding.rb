p Encoding.default_external, Encoding.default_internal, __ENCODING__, 'ä€'.length, $stdout.external_encoding
puts 'ä€'
