# json, csv, erb, yaml, set, time, digest, zlib, bigdecimal, securerandom, optparse.
require "bigdecimal"
require "csv"
require "date"
require "digest"
require "erb"
require "json"
require "optparse"
require "securerandom"
require "set"
require "stringio"
require "time"
require "yaml"
require "zlib"

puts JSON.pretty_generate("name" => "Žofie", "list" => [1, nil, 2.5]), JSON.parse('{"a": [1, {"b": null}]}', symbolize_names: true)
rows = CSV.parse(%(name,score\n"Ada, L.",5\nBob,7\n), headers: true)
p rows.map { |r| r["score"].to_i }.sum, rows[0]["name"], CSV.generate { |c| c << ["a,b", 'q"q', nil] }
puts ERB.new("<% items.each do |i| -%>\n* <%= i %>\n<% end -%>", trim_mode: "-").result_with_hash(items: %w[x y])
puts({ "list" => [1, "two"], "nested" => { "ok" => true } }.to_yaml, YAML.load("a: [1, 2]\nb: text"))
p Set[3, 1, 2] | [5], Set[1, 2].subset?(Set[1, 2, 3]), Date.new(2024, 2, 29).next_year.to_s, Date.parse("2024-03-01").cwday
p Time.at(0).utc.iso8601, Time.parse("2024-01-02 03:04:05 UTC").to_i, Time.utc(2024, 1, 31).strftime("%a %-d %b %j")
p Digest::SHA256.hexdigest("x"), Zlib.crc32("abc"), Zlib::Inflate.inflate(Zlib::Deflate.deflate("y" * 1000)).size
p BigDecimal("0.1") + BigDecimal("0.2") == BigDecimal("0.3"), SecureRandom.hex(8).size, Random.new(42).rand(1000), [1, 2, 3, 4].shuffle(random: Random.new(1))
options = {}
rest = OptionParser.new { |o| o.on("-n", "--number N", Integer) { |n| options[:n] = n }; o.on("-v") { options[:v] = true } }.parse(%w[-v --number 5 file])
p options, rest
begin
  JSON.parse("{bad}")
rescue JSON::ParserError => e
  puts e.class
end
p Marshal.load(Marshal.dump({ a: [1, "x", 2.5, :sym] })), StringIO.new("l1\nl2").each_line.map(&:chomp)
