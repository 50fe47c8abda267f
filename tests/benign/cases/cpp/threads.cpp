// Threads, futures, atomics, condition variables.
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <numeric>
#include <queue>
#include <shared_mutex>
#include <thread>
#include <vector>

int main()
{
	std::atomic<long> counter{0};
	std::mutex lock;
	long total = 0;
	std::vector<std::thread> threads;
	for (int t = 0; t < 8; t++)
		threads.emplace_back([&, t] {
			for (int i = 0; i < 1000; i++) {
				counter.fetch_add(1, std::memory_order_relaxed);
				std::lock_guard guard(lock);
				total += t;
			}
		});
	for (auto &thread : threads)
		thread.join();
	std::cout << counter << ' ' << total << '\n';

	std::vector<int> numbers(100000);
	std::iota(numbers.begin(), numbers.end(), 0);
	auto half = [&](bool second) {
		auto middle = numbers.begin() + 50000;
		return std::accumulate(second ? middle : numbers.begin(), second ? numbers.end() : middle, 0LL);
	};
	auto later = std::async(std::launch::async, half, true);
	std::cout << half(false) + later.get() << '\n';

	std::queue<int> queue;
	std::condition_variable ready;
	std::thread consumer([&] {
		for (int sum = 0;;) {
			std::unique_lock guard(lock);
			ready.wait(guard, [&] { return !queue.empty(); });
			int item = queue.front();
			queue.pop();
			if (item < 0) {
				std::cout << "sum " << sum << '\n';
				return;
			}
			sum += item;
		}
	});
	for (int item : {1, 2, 3, 4, -1}) {
		std::lock_guard guard(lock);
		queue.push(item);
		ready.notify_one();
	}
	consumer.join();

	std::promise<int> promise;
	auto future = promise.get_future();
	std::thread([&] { promise.set_exception(std::make_exception_ptr(std::runtime_error("from a thread"))); }).join();
	try {
		future.get();
	} catch (const std::exception &e) {
		std::cout << e.what() << '\n';
	}
	std::shared_mutex shared;
	std::shared_lock reading(shared);
	std::cout << shared.try_lock_shared() << shared.try_lock() << '\n';
	shared.unlock_shared();
	std::once_flag once;
	for (int i = 0; i < 3; i++)
		std::call_once(once, [] { std::cout << "once\n"; });
	std::cout << (std::thread::hardware_concurrency() >= 1) << '\n';
}
