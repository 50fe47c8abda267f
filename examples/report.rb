# Reads sales.csv from the workspace, leaves totals.csv there.
totals = Hash.new(0)
File.foreach("sales.csv").drop(1).each do |line|
  fruit, amount = line.chomp.split(",")
  totals[fruit] += amount.to_i
end
File.write("totals.csv", totals.sort.map { |fruit, sum| "#{fruit},#{sum}\n" }.join)
puts "#{totals.size} kinds of fruit"
