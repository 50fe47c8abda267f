// An exception that nobody catches: the runtime's message and SIGABRT.
#include <iostream>
#include <stdexcept>

int main()
{
	std::cout << "before" << std::endl;
	throw std::runtime_error("nobody catches this");
}
