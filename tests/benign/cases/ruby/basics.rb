# Strings, symbols, blocks, ranges, hashes, pattern matching.
puts "hi", "Grüße, 世界 🧪".chars.length, "žár".upcase, "%05.2f|%-6s|%x" % [3.14159, "ab", 255]
p (1..10).step(3).to_a, %w[pear fig apple].sort_by { |w| [w.size, w] }, [3, 1, 2].sort.reverse
p({ "a" => 1, b: [2, nil] }, :upcase.to_proc.call("x"), 10.divmod(-3), 2**100, 7.fdiv(2), 1r / 3, Complex(1, 2) ** 2)
totals = Hash.new { |hash, key| hash[key] = [] }
%w[one two three four].each { |w| totals[w.size] << w }
p totals, totals.transform_values(&:count), totals.min_by { |k, _| -k }
case { name: "Ada", roles: [:admin, :dev] }
in { name: String => name, roles: [:admin, *] }
  puts "#{name} rules"
end
def sum(first, *rest, by: 1, **options, &block) = (block ? block.call(first) : first) + rest.sum * by
p sum(1, 2, 3, by: 10), sum(2) { |x| x * x }, method(:sum).arity
fib = Enumerator.new { |y| a, b = 0, 1; loop { y << a; a, b = b, a + b } }
p fib.lazy.select(&:even?).first(6), (1..Float::INFINITY).lazy.map { |x| x * 2 }.first(3)
p "a-b_c".tr("-_", "  ").split.map(&:capitalize).join, "abc".each_char.with_index.map { |c, i| c * i }
puts [1, [2, [3]]].flatten.inspect, [1, 2, 3, 4].each_slice(2).to_a.inspect, (1..4).each_cons(2).to_a.inspect
puts <<~TEXT
  indented
    more #{1 + 1}
TEXT
p "x".frozen?, "abc" <=> "abd", nil.to_a, [nil, 1].compact, 5.clamp(1, 3), 3.7.round, -7 / 2, 1_000.digits
