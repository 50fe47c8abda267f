# Plain computing: sieve, memoised recursion, matrices, sorting, permutations.
sieve = Array.new(20_001, true)
(2..141).each { |n| (n * n).step(20_000, n) { |m| sieve[m] = false } if sieve[n] }
p (2..20_000).count { |n| sieve[n] }
collatz = Hash.new { |h, n| h[n] = n == 1 ? 1 : 1 + h[n.even? ? n / 2 : 3 * n + 1] }
p (1..1000).max_by { |n| collatz[n] }, collatz[871]
p [1, 2, 3, 4].permutation.count { |x| x.each_with_index.none? { |v, i| v == i + 1 } }
grid = Array.new(6) { |r| Array.new(6) { |c| (r * c) % 5 } }
p grid.transpose.map(&:sum), grid.flatten.tally.sort, grid.map { |r| r.inject(:+) }
def quick(list) = list.size < 2 ? list : ((pivot, *rest = list) and (l, r = rest.partition { |x| x < pivot }) and quick(l) + [pivot] + quick(r))
p quick([5, 3, 9, 1, 5, 7]), (1..20).inject(:lcm), 100.downto(95).to_a, 360.to_s(2), "ff".hex
def depth(n) = n.zero? ? 0 : 1 + depth(n - 1)
p depth(5000)
begin
  def forever = forever
  forever
rescue SystemStackError => e
  puts e.message
end
puts (1..15).map { |i| i % 15 == 0 ? "FizzBuzz" : i % 5 == 0 ? "Buzz" : i % 3 == 0 ? "Fizz" : i }.join(" ")
