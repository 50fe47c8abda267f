# Regular expressions and encodings.
text = "2024-03-01: Ada paid $12.50, Bob paid $7.00; žádná chyba"
p text.scan(/\$(\d+\.\d+)/).flatten.sum(&:to_f), text[/(?<y>\d+)-(?<m>\d+)/, :m], text =~ /Bob/
p text.gsub(/(\w+) paid/) { $1.upcase }, text.sub(/(?<=\$)\d+/, "9"), text.tr("a-y", "b-z")[0, 20]
p "žluť" =~ /\p{L}+/, $~[0], "aAbB".swapcase, "one  two".split(/\s+/), "k=v;x=y".split(";").to_h { _1.split("=") }
p "abc".encode("UTF-16LE").bytes, "\xff".force_encoding("BINARY").encode("UTF-8", invalid: :replace, undef: :replace), "é".unicode_normalize(:nfd).length
p "ab\xC3".valid_encoding?, "ab\xC3".scrub("?"), "日本".encode("Shift_JIS").bytesize, Encoding.default_external.name
p "foobar".match?(/o{2}b/x), "path/to/x".partition("/"), "a1b2".each_char.grep(/\d/), "%c%%" % 65, "z".succ, "az".next
begin
  Regexp.new("(open")
rescue RegexpError => e
  puts e.message
end
