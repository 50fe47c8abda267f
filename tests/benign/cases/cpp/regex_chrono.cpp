// Regular expressions, clocks, random engines, numeric formats.
#include <charconv>
#include <chrono>
#include <iostream>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <thread>

int main()
{
	std::string text = "2024-03-01 paid $12.50, 2023-12-31 paid $7.00";
	std::regex date(R"((\d{4})-(\d{2})-(\d{2}))");
	for (std::sregex_iterator it(text.begin(), text.end(), date), end; it != end; ++it)
		std::cout << (*it)[3] << '.' << (*it)[2] << '.' << (*it)[1] << " at " << it->position() << '\n';
	std::cout << std::regex_replace(text, std::regex(R"(\$(\d+)\.\d+)"), "$1 dollars") << '\n';
	try {
		std::regex broken("(open");
	} catch (const std::regex_error &) {
		std::cout << "broken expression\n";
	}
	using namespace std::chrono;
	auto start = steady_clock::now();
	std::this_thread::sleep_for(5ms);
	std::cout << (steady_clock::now() - start >= 5ms) << ' ' << duration_cast<minutes>(3h + 25min + 59s).count() << '\n';
	std::cout << (system_clock::now().time_since_epoch() > hours(24 * 365 * 50)) << '\n';
	std::mt19937_64 engine(42);
	std::cout << engine() << ' ' << engine() << ' ' << std::minstd_rand(7)() << ' ' << (std::random_device{}() <= ~0u) << '\n';
	int value = 0;
	std::string digits = "123x";
	auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
	std::cout << value << *rest << (error == std::errc()) << ' ' << std::numeric_limits<double>::epsilon() << '\n';
	char buffer[32];
	auto [last, failed] = std::to_chars(buffer, buffer + sizeof(buffer), 0.1 + 0.2);
	std::cout << std::string(buffer, last) << (failed == std::errc()) << '\n';
}
