// The containers and algorithms of the standard library.
#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <typename C> void show(const char *name, const C &items)
{
	std::cout << name << ':';
	for (const auto &item : items)
		std::cout << ' ' << item;
	std::cout << '\n';
}

static std::optional<int> find_even(const std::vector<int> &v)
{
	auto it = std::find_if(v.begin(), v.end(), [](int x) { return x % 2 == 0; });
	return it == v.end() ? std::nullopt : std::optional(*it);
}

int main()
{
	std::vector<int> v{5, 3, 9, 1, 7, 3};
	std::sort(v.begin(), v.end());
	v.erase(std::unique(v.begin(), v.end()), v.end());
	show("sorted", v);
	std::transform(v.begin(), v.end(), v.begin(), [k = 10](int x) { return x * k; });
	show("scaled", v);
	std::cout << std::accumulate(v.begin(), v.end(), 0) << ' ' << *std::max_element(v.begin(), v.end()) << ' '
		  << find_even(v).value_or(-1) << ' ' << find_even({1, 3}).has_value() << '\n';
	std::map<std::string, int> words;
	for (auto w : {"the", "cat", "the", "end"})
		++words[w];
	for (const auto &[word, count] : words)
		std::cout << word << '=' << count << ' ';
	std::unordered_map<int, std::string> names{{1, "one"}, {2, "two"}};
	std::cout << names.at(2) << ' ' << names.count(3) << '\n';
	std::priority_queue<int, std::vector<int>, std::greater<>> heap(v.begin(), v.end());
	std::cout << heap.top() << '\n';
	std::list<int> l(5);
	std::iota(l.begin(), l.end(), 1);
	l.reverse();
	l.splice(l.begin(), l, std::prev(l.end()));
	show("list", l);
	std::set<char> letters;
	for (char c : std::string("mississippi"))
		letters.insert(c);
	show("set", letters);
	std::deque<int> d{2, 3};
	d.push_front(1);
	std::rotate(d.begin(), d.begin() + 1, d.end());
	show("deque", d);
	std::array<int, 4> a{4, 2, 3, 1};
	do {
	} while (std::next_permutation(a.begin(), a.end()) && a[0] != 1);
	show("array", a);
	std::variant<int, std::string> either = "text";
	std::cout << std::visit([](auto &&x) { return sizeof(x) > sizeof(int); }, either) << either.index() << '\n';
	auto [x, y, z] = std::tuple(1, 2.5, 'c');
	std::cout << x + y << z << '\n';
	std::partial_sum(v.begin(), v.end(), v.begin());
	show("sums", v);
	std::cout << std::binary_search(v.begin(), v.end(), 40) << std::count_if(v.begin(), v.end(), [](int n) { return n > 50; }) << '\n';
}
