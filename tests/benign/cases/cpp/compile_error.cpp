// A type error, as the compiler words it.
#include <string>

int main()
{
	std::string text = "x";
	int length = text;
	return length + missing;
}
