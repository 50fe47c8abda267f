// Numbers from standard input; damaged ones are named on stderr.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

int main()
{
	std::vector<double> values;
	for (std::string word; std::cin >> word;) {
		try {
			values.push_back(std::stod(word));
		} catch (const std::exception &) {
			std::cerr << "not a number: " << word << '\n';
		}
	}
	double sum = 0, squares = 0;
	for (double v : values) {
		sum += v;
		squares += v * v;
	}
	std::sort(values.begin(), values.end());
	double mean = sum / values.size();
	std::cout << std::setprecision(10) << values.size() << ' ' << mean << ' ' << std::sqrt(squares / values.size() - mean * mean)
		  << ' ' << values[values.size() / 2] << '\n';
	return values.size() == 6 ? 0 : 1;
}
