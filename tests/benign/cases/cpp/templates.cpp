// Templates, constexpr, virtual functions, operators, move semantics, static order.
#include <functional>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

template <int N> struct Factorial {
	static constexpr long value = N * Factorial<N - 1>::value;
};
template <> struct Factorial<0> {
	static constexpr long value = 1;
};

constexpr long fibonacci(int n)
{
	long a = 0, b = 1;
	while (n--) {
		long next = a + b;
		a = b;
		b = next;
	}
	return a;
}
static_assert(fibonacci(50) == 12586269025);

template <typename... T> auto sum(T... values) { return (values + ...); }

template <typename T> std::string kind()
{
	if constexpr (std::is_integral_v<T>)
		return "integral";
	else if constexpr (std::is_floating_point_v<T>)
		return "floating";
	else
		return "other";
}

class Matrix {
	std::vector<double> cells;
	int size;

public:
	explicit Matrix(int n) : cells(n * n), size(n) {}
	double &operator()(int r, int c) { return cells[r * size + c]; }
	double operator()(int r, int c) const { return cells[r * size + c]; }
	Matrix operator*(const Matrix &other) const
	{
		Matrix out(size);
		for (int r = 0; r < size; r++)
			for (int c = 0; c < size; c++)
				for (int k = 0; k < size; k++)
					out(r, c) += (*this)(r, k) * other(k, c);
		return out;
	}
};

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};
struct Square final : Shape {
	double side;
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
};

struct Tracked {
	std::string log;
	Tracked() = default;
	Tracked(const Tracked &o) : log(o.log + "c") {}
	Tracked(Tracked &&o) noexcept : log(std::move(o.log) + "m") {}
};

int main(int argc, char **argv)
{
	std::cout << Factorial<15>::value << ' ' << fibonacci(90) << ' ' << sum(1, 2.5, 3) << sum(std::string("a"), "b") << '\n';
	std::cout << kind<int>() << kind<float>() << kind<std::string>() << '\n';
	Matrix m(60);
	for (int r = 0; r < 60; r++)
		for (int c = 0; c < 60; c++)
			m(r, c) = (r * c) % 7;
	std::cout << (m * m)(13, 17) << '\n';
	Square square(1.5);
	const Shape &shape = square;
	std::cout << shape.area() << (dynamic_cast<const Square *>(&shape) != nullptr) << '\n';
	Tracked a, b(a), c(std::move(b));
	std::cout << c.log << '\n';
	std::function<int(int)> collatz = [&](int n) { return n == 1 ? 0 : 1 + collatz(n % 2 ? 3 * n + 1 : n / 2); };
	std::cout << collatz(27) << '\n';
	for (int i = 1; i < argc; i++)
		std::cout << '<' << argv[i] << '>';
	std::cout << '\n';
	return argc;
}
