// Streams, formatting, strings, exit code.
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

int main()
{
	std::cout << "hi " << 42 << ' ' << std::fixed << std::setprecision(3) << 3.14159 << ' ' << std::boolalpha << true << '\n';
	std::cout << std::hex << std::showbase << 255 << std::dec << std::setw(8) << std::setfill('*') << 7 << " žluť\n";
	std::istringstream in("3 words here");
	int n;
	std::string a, b;
	in >> n >> a >> b;
	std::cout << n << a.size() << b.substr(1) << std::quoted("q\"q") << std::endl;
	std::cerr << "to stderr\n";
	return 4;
}
