// std::filesystem and file streams.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

int main()
{
	fs::create_directories("tree/a/b");
	std::ofstream("tree/one.txt") << "first\nsecond\n";
	std::ofstream("tree/a/b/two.bin", std::ios::binary) << std::string(3000, '\0');
	fs::copy("tree/one.txt", "tree/a/copy.txt");
	fs::create_symlink("one.txt", "tree/link");
	fs::rename("tree/a/copy.txt", "tree/a/žluť.txt");
	std::vector<std::string> found;
	for (const auto &entry : fs::recursive_directory_iterator("tree"))
		found.push_back(entry.path().string() + (entry.is_regular_file() ? " " + std::to_string(entry.file_size()) : ""));
	std::sort(found.begin(), found.end());
	for (const auto &line : found)
		std::cout << line << '\n';
	std::ifstream in("tree/one.txt");
	for (std::string line; std::getline(in, line);)
		std::cout << '[' << line << "]\n";
	fs::path path("/usr/lib/../share/doc.tar.gz");
	std::cout << path.stem() << path.extension() << path.lexically_normal() << fs::path("a/b").parent_path() << '\n';
	fs::permissions("tree/one.txt", fs::perms::owner_read);
	std::cout << static_cast<int>(fs::status("tree/one.txt").permissions()) << fs::is_symlink("tree/link") << fs::exists("none") << '\n';
	std::error_code ec;
	fs::remove("tree", ec);
	std::cout << ec.message() << '\n';
	try {
		std::cout << fs::file_size("missing");
	} catch (const fs::filesystem_error &e) {
		std::cout << e.what() << '\n';
	}
	fs::resize_file("tree/a/b/two.bin", 10);
	std::cout << fs::file_size("tree/a/b/two.bin") << ' ' << fs::remove_all("tree") << ' ' << fs::temp_directory_path() << '\n';
	std::cout << (fs::space(".").available > 0) << '\n';
}
