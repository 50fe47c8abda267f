// Exceptions, destructors in order, smart pointers, nested and rethrown.
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
	std::string name;
	explicit Guard(std::string n) : name(std::move(n)) { std::cout << "+" << name << '\n'; }
	~Guard() { std::cout << "-" << name << '\n'; }
};

struct Bad : std::runtime_error {
	using std::runtime_error::runtime_error;
};

static void inner(int level)
{
	Guard g("level " + std::to_string(level));
	if (level == 2)
		throw Bad("deep down");
	inner(level + 1);
}

static void outer()
{
	try {
		inner(0);
	} catch (const Bad &) {
		std::throw_with_nested(std::logic_error("outer failed"));
	}
}

int main()
{
	try {
		outer();
	} catch (const std::exception &e) {
		std::cout << e.what();
		try {
			std::rethrow_if_nested(e);
		} catch (const std::exception &nested) {
			std::cout << " because " << nested.what() << '\n';
		}
	}
	try {
		std::vector<int>().at(3);
	} catch (const std::out_of_range &) {
		std::cout << "out of range\n";
	}
	try {
		std::stoi("nope");
	} catch (const std::invalid_argument &e) {
		std::cout << e.what() << '\n';
	}
	try {
		std::vector<char> huge(static_cast<std::size_t>(1) << 60);
	} catch (const std::exception &) {
		std::cout << "too big\n";
	}
	auto shared = std::make_shared<Guard>("shared");
	std::weak_ptr<Guard> weak = shared;
	auto unique = std::make_unique<Guard>("unique");
	std::cout << shared.use_count() << weak.expired() << '\n';
	shared.reset();
	std::cout << weak.expired() << '\n';
	std::set_terminate([] {
		std::cout << "terminating" << std::endl;
		std::_Exit(55);
	});
	throw Bad("uncaught");
}
